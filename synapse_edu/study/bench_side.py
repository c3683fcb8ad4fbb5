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


class Ours:
    """This package's model, with the three things that are measured: eval, truncate, n."""

    def __init__(self, model, n_ctx, n_threads, backend):
        from ..model.load import load

        self.model = load(model, backend=backend, n_ctx=n_ctx, n_threads=n_threads)
        self.cache = self.model.new_cache(n_ctx)

    @property
    def n(self):
        return self.cache.n

    def eval(self, ids):
        if len(ids) == 1:
            return self.model.decode(ids[0], self.cache)
        return self.model.prefill(ids, self.cache)

    def truncate(self, n):
        self.cache.truncate(n)


class Worker:
    """Answers the commands; `ids` are the same on both sides."""

    def open(self, side, model, n_ctx, n_threads, n_vocab, since, library=None, **more):
        """Load the model, take a short prompt; seconds from the start of the process to the
        first token, and the memory used before anything was loaded."""
        if side == "ours":
            from ..model import load  # noqa: F401 - Python and its packages, before any weight
        before = peak_memory()
        self.ids = [1 + 7919 * i % (n_vocab - 1) for i in range(n_ctx)]
        if side == "ours":
            self.engine, about = Ours(model, n_ctx, n_threads, **more), {}
        else:
            from .libllama import LibLlama

            self.engine = LibLlama(library, model, n_ctx, n_threads, **more)
            about = {"version": self.engine.version, "system": self.engine.system}
        self.engine.eval(self.ids[:PROMPT])
        return {"seconds": time.time() - since, "before": before} | about

    def prefill(self, n):
        """Seconds for a prompt of n tokens in an empty cache."""
        self.engine.truncate(0)
        start = time.perf_counter()
        self.engine.eval(self.ids[:n])
        return {"seconds": time.perf_counter() - start}

    def fill(self, depth):
        """Bring the cache to `depth` positions, whatever was in it."""
        if self.engine.n > depth:
            self.engine.truncate(depth)
        if self.engine.n < depth:
            self.engine.eval(self.ids[self.engine.n : depth])
        return {}

    def decode(self, n, depth=0):
        """Seconds for n tokens, one after the other, from position `depth` on."""
        self.engine.truncate(depth)
        start = time.perf_counter()
        for id in self.ids[depth : depth + n]:
            self.engine.eval([id])
        return {"seconds": time.perf_counter() - start}

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
