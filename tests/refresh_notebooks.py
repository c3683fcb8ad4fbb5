"""Run chapters and store their outputs: the only thing that rewrites them.

    python tests/refresh_notebooks.py                       # every chapter
    python tests/refresh_notebooks.py notebooks/02*.ipynb   # these

A second run changes no byte.  A chapter that raises, or that writes to standard error, is left
as it was and named at the end.  The outputs of a cell with the tag ``nbval-ignore-output`` are
not stored: such a cell measures the reader's machine, and another machine's figures would mislead.
"""

import argparse
import configparser
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
SANITIZE = Path(__file__).with_name("nbval_sanitize.cfg")
LIVE = "nbval-ignore-output"
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


def execute(notebook, folder, progress=lambda text: None):
    """Run every cell of `notebook` in place, in a fresh kernel started in `folder`."""
    done = 0

    def count(**_):
        nonlocal done
        done += 1
        progress(f"{done} of {len(notebook.cells)} cells")

    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=count,
    )
    client.execute()


def normalise(notebook):
    """Remove what differs between two runs, or between two machines, of the same chapter.

    A widget's number in its kernel goes too: without it a reader who opens the chapter sees the
    picture that is stored beside it, not a message that the widget is gone.
    """
    patterns = sanitize_patterns()
    kept = {k: v for k, v in notebook.metadata.items() if k in ("tags", "title")}
    notebook.metadata = nbformat.from_dict(
        {**kept, "kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    for cell in notebook.cells:
        for key in ("execution", "trusted", "collapsed", "scrolled"):
            cell.metadata.pop(key, None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
            _sanitize(output, patterns)
    return notebook


def sanitize_patterns():
    """The same (pattern, replacement) pairs as nbval uses."""
    settings = configparser.RawConfigParser()
    settings.read(SANITIZE, encoding="utf-8")
    return [(re.compile(settings[s]["regex"]), settings[s]["replace"]) for s in settings.sections()]


def _sanitize(output, patterns):
    def clean(text):
        for pattern, replacement in patterns:
            text = pattern.sub(replacement, text)
        return text

    if "text" in output:
        output["text"] = clean(output["text"])
    data = output.get("data", {})
    for kind, value in data.items():
        if isinstance(value, str) and not kind.startswith("image/p"):
            data[kind] = clean(value)


def complaints(notebook):
    """What a chapter wrote to standard error: a reader would see it as something gone wrong."""
    return [
        output["text"].strip()
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]


def forget_measurements(notebook):
    """Remove the outputs of the cells that measure this machine."""
    for cell in notebook.cells:
        if LIVE in cell.metadata.get("tags", []):
            cell.outputs = []


def refresh(path, progress=lambda text: None):
    """Run one chapter and store it.

    Returns
    -------
    str or None
        Why the chapter was left as it was, or None.
    """
    notebook = nbformat.read(path, as_version=4)
    try:
        execute(notebook, path.parent, progress)
    except CellExecutionError as problem:
        return str(problem).strip()
    normalise(notebook)
    if found := complaints(notebook):
        return "it writes to standard error: " + found[0]
    forget_measurements(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
    return None


def main(arguments=None):
    """Refresh the chapters named on the command line, or all of them; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapters", nargs="*", type=Path)
    chosen = parser.parse_args(arguments).chapters
    chapters = chosen or sorted((ROOT / "notebooks").glob("*.ipynb"))
    failed = []
    for path in chapters:
        start = time.monotonic()

        def progress(text, path=path):
            print(f"\r{path.name}: {text} ", end="", flush=True)

        problem = refresh(path, progress)
        print(f"- {'FAILED' if problem else 'stored'} after {time.monotonic() - start:.0f} s")
        if problem:
            failed.append(f"{path.name}: {problem}")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
