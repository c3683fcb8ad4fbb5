"""How much memory a class takes on one computer: N kernels that each use a model.

    python tests/measure_classroom.py --kernels 1,10,30 --model smollm2 --out data/classroom.json

Each learner is a process of its own, as a Jupyter kernel is.  It opens the model, reads a prompt,
decodes eight tokens and waits.  Then the proportional set size (PSS) of all of them is read: it
divides a page that is shared among the processes that share it, so that the sum is what the class
takes in truth.  Linux only: it reads ``/proc/PID/smaps_rollup``.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from synapse_edu.study import machine

LEARNER = """
import os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import ipykernel.kernelapp, matplotlib.figure, ipywidgets, anywidget  # what a chapter loads
import synapse_edu as se
model = se.load({model!r}, backend={backend!r}, n_threads=1)
cache = model.new_cache(256)
logits = model.prefill(model.tokenizer.encode("Once upon a time there was"), cache)
for _ in range(8):
    logits = model.decode(int(logits.argmax()), cache)
print("ready", flush=True)
sys.stdin.readline()
"""
FIELDS = ("Rss", "Pss", "Private_Clean", "Private_Dirty", "Pss_File")


def memory(pid):
    """Bytes of one process: resident, proportional, private, and shared files' part."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name in FIELDS:
            found[name] = int(rest.split()[0]) * 1024
    return found


def measure(n, model, backend):
    """Start `n` learners, one after the other, and read the memory of all of them at the end."""
    code = LEARNER.format(model=model, backend=backend)
    learners = []
    try:
        for _ in range(n):
            learner = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            learners.append(learner)
            if learner.stdout.readline().strip() != "ready":
                raise RuntimeError("a learner's process ended early")
        found = [memory(learner.pid) for learner in learners]
    finally:
        for learner in learners:
            learner.kill()
            learner.wait()
    total = {name: sum(each[name] for each in found) for name in FIELDS}
    return {
        "kernels": n,
        "pss_total": total["Pss"],
        "pss_each": total["Pss"] // n,
        "rss_each": total["Rss"] // n,
        "private_each": (total["Private_Clean"] + total["Private_Dirty"]) // n,
    }


def table(record):
    """The measurement as Markdown."""
    lines = ["| Model | Kernels | All together (PSS) | Each (PSS) | Each (resident) | Its own |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for row in record["rows"]:
        numbers = [row[n] / 2**20 for n in ("pss_total", "pss_each", "rss_each", "private_each")]
        cells = " | ".join(f"{n:,.0f} MiB" for n in numbers)
        lines.append(f"| {row['model']} | {row['kernels']} | {cells} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default="1,10,30", help="numbers of kernels; default: 1,10,30")
    parser.add_argument("--model", action="append", help="default: built-in and smollm2")
    parser.add_argument("--backend", default=None, choices=["fast", "reference"])
    parser.add_argument("--out", type=Path, help="write the measurement here, as JSON")
    options = parser.parse_args()
    record = {"machine": machine.describe(), "rows": []}
    record["machine"]["python"] = sys.version.split()[0]
    for model in options.model or ["built-in", "smollm2"]:
        for n in map(int, options.kernels.split(",")):
            found = measure(n, model, options.backend)
            record["rows"].append({"model": os.path.basename(model), **found})
            print(record["rows"][-1], flush=True)
    print(table(record))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
