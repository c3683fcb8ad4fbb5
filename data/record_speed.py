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
ROUNDS = 5
FORMATS = ("Q4_1", "Q8_0", "Q4_K", "Q6_K", "F16")


def model_record(path, threads, depths):
    """Tokens a second of one file: by batch, by depth and by number of threads.

    The best of some rounds: what else a machine does can only slow it down, and does so now and
    then, so that everything is measured in turn.
    """
    n_ctx = max(depths) + 64
    watches = {
        n: speed.Stopwatch.of(load(path, backend="fast", n_ctx=n_ctx, n_threads=n)) for n in threads
    }
    watch = watches[max(threads)]
    tests = {("prefill", b): (watch.prefill, b) for b in BATCHES}
    tests |= {("threads", n, "decode"): (w.decode, 32) for n, w in watches.items()}
    tests |= {("threads", n, "prefill"): (w.prefill, 64) for n, w in watches.items()}
    best = dict.fromkeys(tests, 0.0)
    for _ in range(1 + ROUNDS):  # the first warms up, and can only be slower
        for key, (run, n) in tests.items():
            best[key] = max(best[key], n / run(n))
    decode = []
    for depth in depths:
        watch.fill(depth)
        decode.append([depth, max(16 / watch.decode(16, depth) for _ in range(1 + ROUNDS))])
    return {
        "prefill": [[b, best["prefill", b]] for b in BATCHES],
        "decode": decode,
        "threads": [[n, *(best["threads", n, what] for what in ("decode", "prefill"))]
                    for n in threads],
    }  # fmt: skip


def machine_limits(threads):
    """What the machine can do, whatever the model."""
    return {
        "bandwidth": [[n, roofline.read_bandwidth(n)] for n in threads],
        "float32_macs": roofline.float32_macs(),
        "int8_macs": roofline.int8_macs("Q4_K", 1024, 1024),
        "products": {f: speed.product_seconds(f, BATCHES[:6]) for f in FORMATS},
    }


def best_of(limits):
    """The largest rates and the least seconds among several measurements."""
    first = limits[0]
    return {
        "bandwidth": [
            [n, max(found["bandwidth"][i][1] for found in limits)]
            for i, (n, _) in enumerate(first["bandwidth"])
        ],
        "float32_macs": max(found["float32_macs"] for found in limits),
        "int8_macs": max(found["int8_macs"] for found in limits),
        "products": {
            f: [
                [b, min(found["products"][f][i][1] for found in limits)]
                for i, (b, _) in enumerate(points)
            ]
            for f, points in first["products"].items()
        },
    }


def main():
    """Measure everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    limits, models = [machine_limits(threads)], {}
    for name, path in (("smollm2", "smollm2"), ("llama-3.2-1b", synthetic.make("llama-3.2-1b"))):
        models[name] = model_record(path, threads, (0, 1024, 4096))
        limits.append(machine_limits(threads))
    found = {"machine": machine.describe(), **best_of(limits), "models": models}
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
