"""How fast, side by side: this package and, where one is given, llama.cpp.

Both run the same ids on the same machine at the same time of day: every measurement of one side
stands beside one of the other (ours, theirs, ours, theirs …), because a machine that does other
things as well is slower at some times than at others.  Medians are compared.  llama.cpp runs with
flash attention off and with its default, and the faster of the two counts.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from ..errors import BadArgument, UnsupportedModel
from ..ops.fast.threads import checked
from .cost import Cost
from .machine import describe
from .roofline import read_bandwidth

FLASH = ("off", "default")
PATIENCE = 300  # seconds that filling a cache may take before a test of depth is left out


def load():
    """Processes that wanted a core during the last minute; None where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    model : Path
    against : str or None
        A libllama, or ``"llama-cpp-python"``.
    threads : tuple of int
    backend : str or None
        Of this package.
    repeats, starts : int
        Rounds of each test, and of starts.
    prefills : tuple of int
        Prompts' lengths.
    depth : int
        Positions in the cache before the second decode test.
    """

    model: object
    against: str | None = None
    threads: tuple = (1,)
    backend: str | None = None
    repeats: int = 5
    starts: int = 3
    prefills: tuple = (64, 512)
    depth: int = 4096

    def __post_init__(self):
        if self.repeats < 1 or self.starts < 1 or self.depth < 1 or min(self.threads) < 1:
            raise BadArgument("bench: repeats, depth and threads must be at least 1.")
        for n in self.threads:
            checked(n, 1)

    def quick(self):
        """The same in little time: fewer rounds, a smaller depth."""
        return replace(self, repeats=2, starts=1, depth=512)


class Side:
    """One side's process.

    Parameters
    ----------
    name : str
        ``"ours"``, ``"off"`` or ``"default"``.
    """

    def __init__(self, name, **open_options):
        self.name = name
        side = {"side": "ours"} if name == "ours" else {"side": "libllama", "flash": name}
        since = time.time()
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.bench_side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.about = self.ask("open", since=since, **side, **open_options)

    def ask(self, command, **options):
        """Send one command; its answer as a dict."""
        try:
            print(json.dumps({"do": command, **options}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = self.process.wait()
            raise UnsupportedModel(
                f"The process that ran {self.label} ended by itself (exit code {code}) "
                f"when it was asked to {command}."
            )
        answer = json.loads(line)
        if "refused" in answer:
            self.close()
            raise UnsupportedModel(answer["refused"])
        return answer

    @property
    def label(self):
        return "this package" if self.name == "ours" else "llama.cpp"

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # a command that never got through is still in it
                pipe.close()


class Bench:
    """Runs a `Plan`.

    Parameters
    ----------
    plan : Plan
    say : callable
        Is told in a few words what is under way.
    """

    def __init__(self, plan, say=lambda text: None):
        self.plan, self.say = plan, say
        self.cost = Cost.of_file(plan.model)
        self.config = self.cost.config
        self.n_threads, self.bandwidths = None, []  # of the run that is under way

    def run(self):
        """Measure.

        Returns
        -------
        dict
            Ready for JSON; `bench_table.lines` prints it.
        """
        plan, before = self.plan, load()
        runs = [self._with_threads(n) for n in plan.threads]
        return {
            "machine": describe(),
            "load": before,
            "model": {
                "name": self.config.name,
                "n_weights": self.cost.n_weights,
                "bytes": self.cost.nbytes,
                "bytes_per_pass": self.cost.bytes_per_pass,
                "cache_bytes_per_position": self.cost.cache_bytes(1),
            },
            "backend": runs[0].pop("backend"),
            "runs": runs,
        }

    def _names(self):
        return ("ours", *FLASH) if self.plan.against else ("ours",)

    def _open(self, name, n_threads):
        options = {"library": str(self.plan.against)} if name != "ours" else {}
        if name == "ours":
            options = {"backend": self.plan.backend}
        return Side(
            name,
            model=str(self.plan.model),
            n_ctx=self._n_ctx(),
            n_threads=n_threads,
            n_vocab=self.config.n_vocab,
            **options,
        )

    def _n_ctx(self):
        wanted = max(self.plan.depth + 128, *self.plan.prefills)
        return min(wanted, self.config.n_ctx_train)

    def _with_threads(self, n_threads):
        plural = "" if n_threads == 1 else "s"
        self.say(f"{n_threads} thread{plural}: read bandwidth")
        self.n_threads, self.bandwidths = n_threads, [read_bandwidth(n_threads)]
        first, starts = self._starts(n_threads)
        sides = []
        try:
            for name in self._names():
                sides.append(self._open(name, n_threads))
            tests, left_out = self._tests(sides)
            memory = {side.name: side.ask("memory")["peak"] for side in sides}
            about = {side.name: side.about for side in sides}
        finally:
            for side in sides:
                side.close()
        return {
            "n_threads": n_threads,
            "backend": about["ours"]["backend"],
            "bandwidth": max(self.bandwidths),
            "first_start": first,
            "start": starts,
            "tests": tests,
            "left_out": left_out,
            "peak_memory": memory,
            "before_loading": {name: a["before"] for name, a in about.items()},
            "cache_bytes": self.cost.cache_bytes(self._n_ctx()),
            "theirs": {k: about["off"][k] for k in ("version", "system")} if "off" in about else {},
        }

    def _starts(self, n_threads):
        """Seconds from the start of a process to its first token: the first time of each side,
        which fills the caches of files and compiles what is not kept, and the later times."""
        self.say("the first token after a start")
        first, later = {}, {name: [] for name in self._names()}
        for i in range(self.plan.starts + 1):
            for name in self._names():
                side = self._open(name, n_threads)
                side.close()
                if i:
                    later[name].append(side.about["seconds"])
                else:
                    first[name] = side.about["seconds"]
        return first, later

    def _tests(self, sides):
        n_ctx, depth, tests, left_out = self._n_ctx(), self.plan.depth, [], []
        n = self._decode_tokens(sides, n_ctx)
        tests.append(self._test("decode", sides, n, "decode", n=n))
        for length in self.plan.prefills:
            if length > n_ctx:
                left_out.append(f"prefill of {length}: the model's context is {n_ctx}")
                continue
            name = f"prefill of {length}"
            tests.append(self._test(name, sides, length, "prefill", n=length))
        name = f"decode at a depth of {depth:,}"
        if depth + n > n_ctx:
            return tests, [*left_out, f"{name}: the model's context is {n_ctx}"]
        slowest = max(statistics.median(runs) / tests[1]["tokens"]
                      for runs in tests[1]["seconds"].values())  # fmt: skip
        if slowest * depth > PATIENCE:
            minutes = slowest * depth / 60
            return tests, [*left_out, f"{name}: filling the cache would take {minutes:.0f} minutes"]
        self.say(f"filling {depth:,} positions of the cache")
        for side in sides:
            side.ask("fill", depth=depth)
        tests.append(self._test(name, sides, n, "decode", n=n, depth=depth))
        return tests, left_out

    def _decode_tokens(self, sides, n_ctx):
        """As many tokens as take about a second: 8 to 64."""
        seconds = max(side.ask("decode", n=4)["seconds"] for side in sides) / 4
        return max(8, min(64, round(1 / seconds), n_ctx))

    def _test(self, name, sides, n_tokens, command, **options):
        self.say(name)
        for side in sides:
            side.ask(command, **options)  # once unmeasured
        seconds = {side.name: [] for side in sides}
        ours, *theirs = sides
        for _ in range(self.plan.repeats):
            for other in theirs or [None]:
                for side in (ours, other) if other else (ours,):
                    time.sleep(0.05)  # threads that still spin come to rest
                    seconds[side.name].append(side.ask(command, **options)["seconds"])
            self.bandwidths.append(read_bandwidth(self.n_threads, repeats=2))  # the best counts
        return {"name": name, "tokens": n_tokens, **options, "seconds": seconds}
