"""The command ``synapse-edu``: open the workbook, fetch models, look into a file, generate text."""

import argparse
import sys

from . import __version__
from .commands import (
    bench,
    book,
    convert,
    doctor,
    exercises,
    generate,
    inspect,
    lab,
    models,
    offline_kit,
)
from .errors import SynapseError

# as `--help` lists them
COMMANDS = (
    lab, models, inspect, convert, generate, bench, exercises, book, offline_kit, doctor,
)  # fmt: skip

EPILOG = """\
start here:
  synapse-edu lab                     open the workbook in JupyterLab
  synapse-edu models                  which models there are
  synapse-edu generate "Once upon"    let the default model continue a text

`synapse-edu COMMAND --help` explains one command."""


def main(arguments=None):
    """Run one command.

    Parameters
    ----------
    arguments : list of str or None
        The words after ``synapse-edu``; None takes them from the shell.

    Returns
    -------
    int
        0: done; 1: refused, with the reason on standard error; 2: the command line was wrong
        (argparse exits with it); 130: stopped by Ctrl-C.
    """
    _print_any_text()
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except SynapseError as problem:
        print(f"synapse-edu {options.command}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has seen enough
        return 0


def _print_any_text():
    """A console with an old encoding shows an escape where it cannot show a character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def parser():
    """The whole command line as one `argparse.ArgumentParser`."""
    top = argparse.ArgumentParser(
        prog="synapse-edu",
        description="A workbook that shows, number by number, what a Llama model computes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"synapse-edu {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return top
