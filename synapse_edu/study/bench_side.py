"""One side of a comparison, in a process of its own: this package, or a libllama.

``python -m synapse_edu.study.bench_side`` reads one JSON command a line and answers each with one
line.  A process of its own gives each side its own peak of memory and its own start, and a crash
in the library does not take the comparison with it.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from ..errors import SynapseError

PROMPT = 16  # tokens of the prompt whose answer's first token is waited for at the start


class Worker:
    """Answers the commands."""

    def open(self, side, model, n_ctx, n_threads, n_vocab, since, library=None, **more):
        """Load the model, take a short prompt; seconds from the start of the process to the
        first token, and the memory used before anything was loaded."""
        from .speed import Ours, Stopwatch

        about = {"before": peak_memory()}
        if side == "ours":
            from ..model.load import load

            loaded = load(model, n_ctx=n_ctx, n_threads=n_threads, **more)
            engine = Ours(loaded)
            about |= {"backend": loaded.backend.name}
        else:
            from .libllama import LibLlama

            engine = LibLlama(library, model, n_ctx, n_threads, **more)
            about |= {"version": engine.version, "system": engine.system}
        self.watch = Stopwatch(engine, n_vocab, n_ctx)
        self.watch.prefill(PROMPT)
        return {"seconds": time.time() - since} | about

    def prefill(self, n):
        """Seconds for a prompt of n tokens."""
        return {"seconds": self.watch.prefill(n)}

    def fill(self, depth):
        """Bring the cache to `depth` positions."""
        self.watch.fill(depth)
        return {}

    def decode(self, n, depth=0):
        """Seconds for n tokens from position `depth` on."""
        return {"seconds": self.watch.decode(n, depth)}

    def memory(self):
        """The largest amount of memory that was resident so far, in bytes; None if not known."""
        return {"peak": peak_memory()}


def peak_memory():
    """Bytes resident at the most in this process so far; None where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike getrusage, this does not begin with the parent's peak
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main():
    """Answer until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not come between the answers
    worker = Worker()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except SynapseError as problem:
            answer = {"refused": str(problem)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
