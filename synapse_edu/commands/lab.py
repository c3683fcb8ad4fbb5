"""``synapse-edu lab``: open the workbook in JupyterLab."""

import argparse
from pathlib import Path

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "lab",
        run,
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


def run(options):
    """``synapse-edu lab``"""
    from .. import lab
    from ..errors import BadArgument

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
