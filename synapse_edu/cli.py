"""The command ``synapse-edu``: open the workbook, fetch models, look into a file, generate text."""

import argparse
import sys
from pathlib import Path

from .errors import SynapseError

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
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_lab, _add_models, _add_inspect, _add_convert, _add_generate):
        add(commands)
    return top


def _command(commands, name, run, summary, description):
    command = commands.add_parser(name, help=summary, description=description)
    command.set_defaults(run=run)
    return command


def _add_lab(commands):
    command = _command(
        commands,
        "lab",
        run_lab,
        "open the workbook in JupyterLab",
        "Open the workbook in JupyterLab. You work in copies of the chapters: a newer version "
        "replaces the copies you have not edited and never one that you have. Delete a copy to "
        "get the chapter afresh.",
    )
    command.add_argument("--no-browser", action="store_true", help="only print the address to open")
    command.add_argument("--port", type=_port, help="port to serve on (otherwise 8888 or the next)")
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--work", type=Path, metavar="FOLDER", help="folder for the copies of the chapters"
    )
    place.add_argument(
        "--in-place",
        action="store_true",
        help="for authors: open the originals of this clone, not copies",
    )


def _port(text):
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 1 to 65535")
    return port


def run_lab(options):
    """``synapse-edu lab``"""
    from . import lab
    from .errors import BadArgument

    chapters, clone = lab.originals()
    if options.in_place:
        if clone is None:
            raise BadArgument(
                "--in-place opens the originals of a clone, and this is an installed package. "
                "Leave it out to work in copies."
            )
        folder = chapters
        print(f"You are editing the originals in {folder}.")
    else:
        folder = (options.work or lab.work_folder()).expanduser().resolve()
        for sentence in lab.refresh(chapters, folder):
            print(sentence)
        print(f"Your copies of the chapters, with your edits, are in {folder}.")
    print("JupyterLab is starting. Stop it with Ctrl-C in this window.", flush=True)
    lab.run_jupyter(lab.jupyter_arguments(folder, not options.no_browser, options.port))


def _add_models(commands):
    command = _command(
        commands,
        "models",
        run_models,
        "list the models known by name, or fetch one",
        "List the models known by name, or fetch one so that it works offline afterwards.",
    )
    command.add_argument(
        "action", nargs="?", choices=["list", "get"], default="list", help="list (default) or get"
    )
    command.add_argument("name", nargs="?", help="which model to get")


def run_models(options):
    """``synapse-edu models [list | get NAME]``"""
    from .checkpoint import catalogue
    from .errors import BadArgument

    if options.action == "list":
        print(catalogue.models())
        return
    if options.name is None:
        raise BadArgument("Say which model to get; `synapse-edu models` lists the names.")
    print(catalogue.get(options.name))


def _add_inspect(commands):
    command = _command(
        commands,
        "inspect",
        run_inspect,
        "show what a GGUF file holds, without loading its weights",
        "Show a GGUF file's model, metadata and tensors. The weights are not read, so that a "
        "large file opens as fast as a small one.",
    )
    command.add_argument("file", help="a GGUF file, its first shard, or a model's name")
    command.add_argument("--tensors", action="store_true", help="list every tensor")
    command.add_argument("--metadata", action="store_true", help="list every metadata key")


def run_inspect(options):
    """``synapse-edu inspect FILE``"""
    from . import describe

    for line in describe.describe_file(options.file, options.tensors, options.metadata):
        print(line)


def _add_convert(commands):
    command = _command(
        commands,
        "convert",
        run_convert,
        "make a GGUF file of a Hugging Face folder",
        "Make a GGUF file of a folder with config.json, *.safetensors and a tokenizer, as models "
        "are published on Hugging Face.",
    )
    command.add_argument("folder", type=Path, help="the folder with config.json")
    command.add_argument("file", type=Path, help="the GGUF file to write")
    command.add_argument("--format", help="of the matrices, such as F16 or Q8_0; default: as saved")


def run_convert(options):
    """``synapse-edu convert FOLDER FILE``"""
    from .checkpoint.convert import convert

    print(convert(options.folder, options.file, options.format))


def _add_generate(commands):
    command = _command(
        commands,
        "generate",
        run_generate,
        "let a model continue a text",
        "Let a model continue a text, and print each token as it is chosen.",
    )
    command.add_argument("prompt", help="the text to continue, in quotes")
    command.add_argument("--model", help="a GGUF file or a model's name (otherwise the default)")
    command.add_argument("--max-tokens", type=int, default=64, metavar="N", help="default: 64")
    command.add_argument(
        "--temperature", type=float, default=0.0, help="0, the default: always the likeliest token"
    )
    command.add_argument("--top-k", type=int, default=0, metavar="K", help="0: all tokens")
    command.add_argument("--top-p", type=float, default=1.0, metavar="P", help="1: all tokens")
    command.add_argument("--seed", type=int, default=0, help="the same seed, the same text")


def run_generate(options):
    """``synapse-edu generate PROMPT``"""
    import synapse_edu as se

    model = se.load(options.model) if options.model else se.load()
    sampler = se.Sampler(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )
    print(options.prompt, end="", flush=True)
    tokens = model.generate(options.prompt, max_tokens=options.max_tokens, sampler=sampler)
    for token in tokens:
        print(token.text, end="", flush=True)
    print()
