"""A submission against the teacher's notebook: which cells run, in which order, and what counts.

A learner's notebook may hold copies of cells, cells in another order, edited or missing tests, or
be no notebook at all.  So nothing in it is trusted to be a test.  Locked cells and tests come from
the teacher's notebook; from the submission come only the answers and whatever cells were added.
"""

import ast
import json
from dataclasses import dataclass, field

from .editions import TEXT_STUB, marks, task_of

LARGEST = 20 * 1024**2  # bytes of a notebook file


@dataclass(frozen=True)
class Graded:
    """One thing that gives points.

    `tasks` are (name of the task, name of the variable that holds the answer); a graded cell of
    another kind has none, and counts if it runs without an error.
    """

    grade_id: str
    points: float
    tasks: tuple
    source: str
    written: bool = False


@dataclass
class Sheet:
    """What there is to run and to read of one submission."""

    cells: list = field(default_factory=list)  # dicts: a source to run, or a `Graded`
    written: dict = field(default_factory=dict)  # grade id → text
    notes: list = field(default_factory=list)  # sentences for the learner


def graded_cells(teacher):
    """The graded cells of the teacher's notebook, in order."""
    found = []
    for cell in teacher["cells"]:
        mark = marks(cell)
        if not mark.get("grade"):
            continue
        written = bool(mark.get("solution"))
        tasks = () if written else tuple(insisted(cell["source"]))
        points = float(mark.get("points", 0))
        found.append(Graded(mark["grade_id"], points, tasks, cell["source"], written))
    return found


def insisted(source):
    """(task, answer) of each ``insist("task", answer)`` in a cell, each pair once.

    The list is empty if the cell does anything else besides, for then it has to be run.
    """
    found = []
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return []
    for node in statements:
        call = node.value if isinstance(node, ast.Expr) else None
        match call:
            case ast.Call(
                func=ast.Name(id="insist"),
                args=[ast.Constant(value=str(name)), ast.Name(id=answer)],
            ):
                found += [(name, answer)] if (name, answer) not in found else []
            case _:
                return []
    return found


def load(path):
    """The cells of a submitted notebook; ValueError says what is wrong with the file."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"The file is larger than {LARGEST // 1024**2} MiB.")
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = notebook["cells"]
        return [_plain_cell(cell) for cell in cells]
    except UnicodeDecodeError:
        raise ValueError("The file is not text.") from None
    except RecursionError:
        raise ValueError("The file is nested too deeply to be a notebook.") from None
    except json.JSONDecodeError as problem:
        raise ValueError(f"The file is no JSON: {problem.msg} in line {problem.lineno}.") from None
    except (KeyError, TypeError, AttributeError):
        raise ValueError("The file holds no list of cells.") from None


def _plain_cell(cell):
    source = cell.get("source", "")
    source = "".join(source) if isinstance(source, list) else source
    metadata = cell.get("metadata", {})
    if not isinstance(source, str):
        raise TypeError
    return {
        "cell_type": cell.get("cell_type"),
        "source": source,
        "metadata": metadata if isinstance(metadata, dict) else {},
    }


def merge(teacher, submitted):
    """Lay a submission into the teacher's notebook.

    Parameters
    ----------
    teacher : dict
    submitted : list of dict
        From `load`.

    Returns
    -------
    Sheet
    """
    sheet = Sheet()
    known = {
        marks(cell)["grade_id"]: cell for cell in teacher["cells"] if "grade_id" in marks(cell)
    }
    theirs = {}  # grade id → places in the submission
    placed = []  # (place, 0 given before an answer | 1 the learner's own | 2 tests after it, cell)
    for place, cell in enumerate(submitted):
        grade_id = marks(cell).get("grade_id")
        original = known.get(grade_id) if isinstance(grade_id, str) else None
        if original is not None:
            theirs.setdefault(grade_id, []).append(place)
        if cell["cell_type"] == "code" and (original is None or marks(original).get("solution")):
            placed.append((place, 1, {"source": cell["source"], "number": place + 1}))
    placed += _locked(teacher, theirs, end=len(submitted))
    sheet.cells = [cell for *_, cell in sorted(placed, key=lambda row: row[:2])]
    for grade_id, places in theirs.items():
        mark = marks(known[grade_id])
        if mark.get("grade") and mark.get("solution"):
            sheet.written[grade_id] = submitted[places[0]]["source"]
    sheet.notes = list(_damage(known, theirs))
    return sheet


def _locked(teacher, theirs, end):
    """(place, order, cell) of each of the teacher's locked code cells.

    The set-up comes first of all.  What is given with a task comes before the first copy of its
    answer, and its tests after the last one; where the answer is missing, both come at the end.
    """
    placed, first, last, current = [], -1, -1, None
    for at, cell in enumerate(teacher["cells"]):
        mark, task = marks(cell), task_of(cell)
        if task is not None and task != current:
            current = task
            answers = [
                place
                for other in teacher["cells"][at:]
                if task_of(other) == task and marks(other).get("solution")
                for place in theirs.get(marks(other)["grade_id"], ())
            ]
            first, last = (min(answers), max(answers)) if answers else (end, end)
        only_to_look = cell["metadata"].get("synapse_edu", {}).get("look")
        if cell["cell_type"] != "code" or mark.get("solution") or only_to_look:
            continue
        if mark.get("grade"):
            placed.append((last, 2, _test(cell)))
        elif mark.get("locked"):
            placed.append((first, 0, {"source": cell["source"]}))
    return placed


def _test(cell):
    tasks = insisted(cell["source"])
    if tasks:
        return {"graded": tasks}
    return {"source": cell["source"], "plain": marks(cell)["grade_id"]}


def _damage(known, theirs):
    """Sentences for the learner about cells that are missing, or there more than once."""
    for grade_id, cell in known.items():
        mark, places = marks(cell), theirs.get(grade_id, [])
        if mark.get("solution") and not places:
            yield f"The cell of the answer {grade_id!r} is missing."
        if mark.get("solution") and len(places) > 1:
            yield f"The cell {grade_id!r} is there {len(places)} times; all were run, in order."
        if mark.get("grade") and not mark.get("solution") and not places:
            yield f"The test {grade_id!r} was missing and was put back."


def is_blank(text):
    """Whether a written answer is still what the exercise put there."""
    return text is None or text.strip() in ("", TEXT_STUB)
