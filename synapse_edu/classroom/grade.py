"""Grading a folder of submissions: points for each task, and words that give no test away.

A submission runs in a process that knows no right answer (`worker`); this process knows them and
runs nothing of the learner's.  Functions are tried twice: on the inputs that the learner's own
`check` uses, and on inputs drawn from a seed that nobody has seen.
"""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import BadArgument
from . import editions, isolate
from .compare import NOT_ATTEMPTED, RAISED, RIGHT, Verdict
from .outcome import Outcome
from .plain import pack, unpack
from .sheet import graded_cells, is_blank, load, merge
from .tasks import find

HIDDEN_ROUNDS = 2
WORDS = {
    NOT_ATTEMPTED: "Not attempted.",
    RAISED: "It raised an error.",
    "wrong type": "It gave something of another kind than was asked for.",
    "wrong shape": "It gave another shape.",
    "wrong dtype": "It gave another dtype.",
    "wrong numbers": "It gave other values.",
    "mutated input": "It changed its argument.",
    "too long": "It took too long.",
    "missing": "There is no answer of this name.",
    "ended": "It ended the process that ran it, or was never reached.",
}


@dataclass
class Mark:
    """One graded cell of one learner: points, of how many, and what the learner reads."""

    grade_id: str
    points: float
    most: float
    status: str
    words: str
    written: str | None = None

    @property
    def to_read(self):
        """Whether a person has to read the answer and give the points."""
        return self.status == "to be read"


@dataclass
class Grade:
    """One notebook of one learner."""

    student: str
    exercise: str
    marks: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def points(self):
        return sum(mark.points for mark in self.marks)

    @property
    def most(self):
        return sum(mark.most for mark in self.marks)


def submissions(folder):
    """(student, exercise, path) of every notebook handed in; a path is None if it is missing.

    A student is a folder in `folder`; the notebook of an exercise lies anywhere beneath it, under
    its own name.  nbgrader's ``submitted`` folder has this form.

    Raises
    ------
    BadArgument
        If there is no folder, or nothing in it that can be graded.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadArgument(f"{folder} is no folder. Give the folder with one folder a student.")
    names = {path.name: name for name, path in editions.notebooks().items()}
    found = []
    for student in sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] != "."):
        seen = {}
        for path in sorted(student.rglob("*.ipynb")):
            hidden = any(part.startswith(".") for part in path.relative_to(student).parts)
            if path.name in names and not hidden and not path.is_symlink():
                seen.setdefault(names[path.name], path)
        found += [(student.name, exercise, path) for exercise, path in sorted(seen.items())]
    if not found:
        raise BadArgument(
            f"{folder} holds no submission. It should hold one folder a student, and in it the "
            f"notebooks under the names that `synapse-edu exercises release` gave them."
        )
    return found


def grade(student, exercise, path, class_seed=0, hidden_seed=None, limits=None):
    """Grade one notebook.

    Parameters
    ----------
    student, exercise : str
    path : Path
    class_seed : int
        The one that the class's edition was released with.
    hidden_seed : int, optional
        Seed of the inputs that the learner has not seen; a fresh one by default.
    limits : isolate.Limits, optional

    Returns
    -------
    Grade
        Never raises for what a submission holds: a file that cannot be read gets no points.
    """
    teacher = editions.for_class(editions.read(editions.notebooks()[exercise]), class_seed)
    result = Grade(student, exercise)
    graded = graded_cells(teacher)
    try:
        sheet = merge(teacher, load(path))
    except (OSError, ValueError) as problem:
        result.notes.append(f"The notebook could not be read. {problem}")
        result.marks = [
            Mark(g.grade_id, 0.0, g.points, "not read", "The notebook could not be read.")
            for g in graded
        ]
        return result
    result.notes = sheet.notes
    hidden = secrets.randbelow(2**31) if hidden_seed is None else hidden_seed
    cases = _all_cases(graded, class_seed, hidden)
    lines, endings = isolate.run(_job(sheet, cases), class_seed, limits or isolate.Limits())
    result.notes += _failures(lines) + endings
    told = {line["task"]: line for line in lines if isinstance(line.get("task"), str)}
    ran = {line.get("plain") for line in lines if "plain" in line}
    for g in graded:
        result.marks.append(_mark(g, told, ran, sheet, cases, class_seed))
    return result


def _all_cases(graded, class_seed, hidden):
    """Task → the inputs of its function, visible ones first; None for a value."""
    cases = {}
    for name in {name for g in graded for name, _ in g.tasks}:
        task = find(name)
        cases[name] = None
        if task.is_function:
            seeds = [class_seed, *(hidden + k for k in range(HIDDEN_ROUNDS))]
            cases[name] = [case for seed in seeds for case in task.cases(seed)]
    return cases


def _job(sheet, cases):
    cells = []
    for cell in sheet.cells:
        if "graded" in cell:
            tasks = [
                {
                    "name": name,
                    "answer": answer,
                    "cases": None if cases[name] is None else pack(cases[name]),
                }
                for name, answer in cell["graded"]
            ]
            cells.append({"tasks": tasks})
        else:
            cells.append(cell)
    return cells


def _failures(lines):
    """Sentences about the learner's own cells that did not run through."""
    found = []
    for line in lines:
        if "raised" in line and isinstance(line.get("cell"), int):
            what = "took too long" if line["raised"] == "too long" else f"raised {line['raised']!s}"
            if "NotImplementedError" not in what:  # that is a task not attempted
                found.append(f"Cell {line['cell']} {what[:60]}.")
    return found


def _mark(g, told, ran, sheet, cases, class_seed):
    if g.written:
        text = sheet.written.get(g.grade_id)
        if is_blank(text):
            return Mark(g.grade_id, 0.0, g.points, NOT_ATTEMPTED, WORDS[NOT_ATTEMPTED])
        words = "Your answer will be read by a person."
        return Mark(g.grade_id, 0.0, g.points, "to be read", words, text)
    if not g.tasks:
        passed = g.grade_id in ran
        words = "Right." if passed else "The test did not pass."
        return Mark(g.grade_id, g.points * passed, g.points, RIGHT if passed else "wrong", words)
    for name, _ in g.tasks:
        verdict = _judge(name, told.get(name), cases[name], class_seed)
        if not verdict:
            words = WORDS.get(verdict.status, "It is not right.")
            if verdict.cause:
                words += f" Probable cause: {verdict.cause}."
            return Mark(g.grade_id, 0.0, g.points, verdict.status, words)
    return Mark(g.grade_id, g.points, g.points, RIGHT, "Right.")


def _judge(name, line, cases, class_seed):
    """The verdict on what the worker told of one task; whatever it told is only data."""
    task = find(name)
    if line is None or line.get("ended"):
        return Verdict("ended", "")
    if line.get("failed"):
        return Verdict(RAISED, "")
    if line.get("too_long"):
        return Verdict("too long", "")
    if line.get("missing"):
        return Verdict("missing", "")
    try:
        if "outcomes" in line and cases is not None:
            return task.judge(cases, [Outcome.unpack(packed) for packed in line["outcomes"]])
        return task.judge_value(unpack(line["value"]), class_seed)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Verdict(RAISED, "")
