"""From the teacher's notebooks to a class's: solutions and hidden tests out, fresh numbers in.

The notebooks in ``exercises/`` are in nbgrader's cell format, with its own markers, and the
student edition has the same cell sources as nbgrader's ``generate_assignment`` makes.  Everything
else in a notebook stays as it is, byte for byte.
"""

import json
import re
import secrets
import textwrap
from pathlib import Path

from ..atomic import replacing
from ..errors import BadArgument

PACKAGE = Path(__file__).resolve().parents[1]
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
TEXT_STUB = "YOUR ANSWER HERE"
SOLUTION = re.compile(r"^([ \t]*)### BEGIN SOLUTION.*?### END SOLUTION[^\n]*", re.M | re.S)
HIDDEN = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS[^\n]*\n?", re.M | re.S)
SEED_LINE = re.compile(r"^use_class_seed\(0\)", re.M)
HIDDEN_SEED = re.compile(r"seed=\d+")


def folder():
    """Folder of the teacher's notebooks: in a clone, or inside an installed package."""
    clone = PACKAGE.parent
    if (clone / "pyproject.toml").is_file() and (clone / "exercises").is_dir():
        return clone / "exercises"
    return PACKAGE / "_book" / "exercises"


def notebooks():
    """Name → path of each exercise's notebook; the name is its folder's, as in nbgrader.

    Raises
    ------
    BadArgument
        If there are none.
    """
    found = {path.parent.name: path for path in sorted(folder().glob("*/*_exercises.ipynb"))}
    if not found:
        raise BadArgument(
            f"There are no exercises in {folder()}. Install synapse_edu again, or use a complete "
            f"clone."
        )
    return found


def read(path):
    """A notebook as plain dicts, every cell's source as one string."""
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def write(notebook, path):
    """Store a notebook as nbformat does: sorted keys, one space of indent, one line a string."""
    cells = []
    for cell in notebook["cells"]:
        cells.append({**cell, "source": cell["source"].splitlines(keepends=True)})
    text = json.dumps({**notebook, "cells": cells}, indent=1, sort_keys=True, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8", newline="\n")


def marks(cell):
    """A cell's nbgrader metadata; empty for a cell without."""
    found = cell.get("metadata", {}).get("nbgrader", {})
    return found if isinstance(found, dict) else {}


def task_of(cell):
    """Name of the task that a cell belongs to, or None."""
    return cell.get("metadata", {}).get("synapse_edu", {}).get("task")


def strip(notebook):
    """Make the student's notebook of the teacher's, in place: no solutions, no hidden tests, no
    outputs; in Jupyter no cell of a task can be deleted, and no locked one edited."""
    for cell in notebook["cells"]:
        mark = marks(cell)
        if mark.get("solution"):
            cell["source"] = without_solution(cell["source"], cell["cell_type"])
        if cell["cell_type"] == "code":
            cell["source"] = HIDDEN.sub("", cell["source"]).rstrip("\n")
            cell["outputs"], cell["execution_count"] = [], None
        if mark.get("locked") or mark.get("grade") or mark.get("solution"):
            cell["metadata"]["deletable"] = False
        if mark.get("locked"):
            cell["metadata"]["editable"] = False
    return notebook


def without_solution(source, kind="code"):
    """The source with a stub in place of each solution, or of all of it if none is marked."""
    stub = STUB if kind == "code" else TEXT_STUB
    if not SOLUTION.search(source):
        return stub
    return SOLUTION.sub(lambda found: textwrap.indent(stub, found[1]), source)


def for_class(notebook, class_seed):
    """Write a class's seed into a notebook, in place, and new seeds of the hidden tests.

    The seeds of the hidden tests do not follow from the class's: a student knows that one.
    """
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = SEED_LINE.sub(f"use_class_seed({class_seed})", cell["source"])
            if marks(cell).get("grade"):
                cell["source"] = HIDDEN.sub(_reseeded, cell["source"])
    return notebook


def _reseeded(found):
    return HIDDEN_SEED.sub(lambda _: f"seed={secrets.randbelow(2**31)}", found[0])


def release(out, class_seed=0, teacher=False, force=False):
    """Write an edition of all exercises.

    Parameters
    ----------
    out : Path
    class_seed : int
        0 for the book's own numbers.
    teacher : bool
        Keep solutions and hidden tests: nbgrader's ``source`` folder for a class.
    force : bool
        Replace notebooks that are there already and differ.

    Returns
    -------
    list of Path

    Raises
    ------
    BadArgument
        If a notebook is there already and differs, before anything is written.
    """
    made = {}
    for name, path in notebooks().items():
        notebook = read(path)
        if class_seed:
            for_class(notebook, class_seed)
        made[Path(out) / name / path.name] = notebook if teacher else strip(notebook)
    taken = [path for path, notebook in made.items() if path.exists() and _differs(path, notebook)]
    if taken and not force:
        raise BadArgument(
            f"{taken[0]} is there already and differs: somebody may have worked in it. Choose "
            f"another folder, or replace it with --force."
        )
    for path, notebook in made.items():
        write(notebook, path)
    return list(made)


def _differs(path, notebook):
    try:
        return read(path) != notebook
    except (OSError, ValueError, KeyError, TypeError):
        return True


def solution_of(name):
    """The source of the solution of a task, without the markers.

    Raises
    ------
    BadArgument
        If no notebook has one.
    """
    for path in notebooks().values():
        for cell in read(path)["cells"]:
            if task_of(cell) == name and marks(cell).get("solution"):
                lines = cell["source"].split("\n")
                return "\n".join(line for line in lines if "### " not in line[:24])
    raise BadArgument(f"No exercise has a solution of {name}.")


def model_answers():
    """(exercise, grade id) → model answer of every written question."""
    return {
        (name, marks(cell)["grade_id"]): cell["source"]
        for name, path in notebooks().items()
        for cell in read(path)["cells"]
        if marks(cell).get("grade") and marks(cell).get("solution")
    }
