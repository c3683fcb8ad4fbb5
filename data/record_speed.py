"""Measure this machine and write ``speed.json``: what chapters 04 and 05 show beside the reader's.

    python data/record_speed.py [--threads 1,2] [--out data/speed.json]

Needs SmolLM2 (``synapse-edu models get smollm2``) and makes the synthetic Llama-3.2-1B.  Run it
on a machine that does nothing else: it takes some minutes.
"""

import argparse
import json
from pathlib import Path

from synapse_edu import load
from synapse_edu.study import machine, roofline, speed, synthetic

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FORMATS = ("Q4_1", "Q8_0", "Q4_K", "Q6_K", "F16")


def model_record(path, threads, depths):
    """Tokens a second of one file: by batch, by depth and by number of threads."""
    found = {"prefill": [], "decode": [], "threads": []}
    for n in threads:
        model = load(path, backend="fast", n_ctx=max(depths) + 64, n_threads=n)
        watch = speed.Stopwatch.of(model)
        found["threads"].append([n, watch.decode_rate(32), watch.prefill_rate(64)])
        if n == max(threads):
            found["prefill"] = [[b, watch.prefill_rate(b)] for b in BATCHES]
            found["decode"] = [[d, watch.decode_rate(16, d)] for d in depths]
    return found


def main():
    """Measure everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    found = {
        "machine": machine.describe(),
        "bandwidth": [[n, roofline.read_bandwidth(n)] for n in threads],
        "float32_macs": roofline.float32_macs(),
        "products": {f: speed.product_seconds(f, BATCHES[:6]) for f in FORMATS},
        "models": {
            "smollm2": model_record("smollm2", threads, (0, 1024, 4096)),
            "llama-3.2-1b": model_record(synthetic.make("llama-3.2-1b"), threads, (0, 1024, 4096)),
        },
    }
    found["int8_macs"] = roofline.int8_macs("Q4_K", 1024, 1024)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
