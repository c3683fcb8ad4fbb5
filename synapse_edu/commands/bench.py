"""``synapse-edu bench``: how fast this computer runs a model, alone or beside llama.cpp."""

import json
import sys
from pathlib import Path

from .command import add_command

DESCRIPTION = """\
Measure tokens a second, start and memory.  With --against, llama.cpp runs the same work in turn
with this package, on the same number of threads; give the path of its library (libllama), or
llama-cpp-python if that package is installed.  Nothing is built or downloaded."""


def add(commands):
    command = add_command(commands, "bench", run, "measure how fast a model runs here", DESCRIPTION)
    command.add_argument("--model", help="a GGUF file or a model's name (otherwise the default)")
    command.add_argument(
        "--make",
        metavar="NAME",
        help="make and measure a model of this shape with random Q4_K_M weights, "
        "such as llama-3.2-1b",
    )
    command.add_argument("--against", metavar="LIBRARY", help="a libllama, or llama-cpp-python")
    command.add_argument(
        "--threads", metavar="N,N", help="numbers of threads, such as 1,2; default: all cores"
    )
    command.add_argument("--backend", choices=["fast", "reference"], help="of this package")
    command.add_argument("--repeats", type=int, default=5, metavar="N", help="rounds; default: 5")
    command.add_argument(
        "--depth", type=int, default=4096, metavar="N",
        help="cached positions of the second decode test; default: 4096",
    )  # fmt: skip
    command.add_argument("--quick", action="store_true", help="two rounds, a depth of 512")
    command.add_argument("--json", type=Path, metavar="FILE", help="write every measurement here")


def run(options):
    """``synapse-edu bench``"""
    from ..atomic import replacing
    from ..checkpoint import catalogue
    from ..errors import BadArgument
    from ..study import bench, bench_table, synthetic

    if options.make and options.model:
        raise BadArgument("--make and --model: give one of the two.")
    if options.json and not options.json.absolute().parent.is_dir():
        raise BadArgument(f"--json {options.json}: its folder does not exist; make it first.")
    plan = bench.Plan(
        model=synthetic.make(options.make) if options.make else catalogue.resolve(options.model),
        against=options.against,
        threads=_threads(options.threads),
        backend=options.backend,
        repeats=options.repeats,
        depth=options.depth,
    )
    found = bench.Bench(plan.quick() if options.quick else plan, _say).run()
    _say("")
    print("\n".join(bench_table.lines(found)))
    if options.json:
        found["summary"] = bench_table.summary(found)
        with replacing(options.json) as part:
            part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _say(text):
    """What is under way: on a terminal one line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _threads(text):
    from ..errors import BadArgument
    from ..ops.fast.threads import available

    if text is None:
        return (available(),)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadArgument(f"--threads {text}: give numbers, such as 1,2.") from None
