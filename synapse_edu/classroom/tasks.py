"""A task: its question, how the right answer is computed, and what usually goes wrong."""

import importlib
import pkgutil
import zlib
from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument, did_you_mean
from .compare import (
    MUTATED,
    NOT_ATTEMPTED,
    PATCHED,
    RAISED,
    RIGHT,
    WRONG_NUMBERS,
    WRONG_TYPE,
    Verdict,
    compare,
    is_untouched,
)
from .guard import originals
from .outcome import collect
from .plain import Unreadable, plain

TASKS = {}


@dataclass(frozen=True)
class Task:
    """One thing to answer.

    Attributes
    ----------
    name : str
        ``"02.softmax"`` for a quick check of a chapter, ``"ex02.softmax"`` for an exercise.
    right : function
        For a value: returns it, computed from the engine where it can be; takes the numbers of
        `given` by name.  For a function: the reference itself.
    hints : tuple of str
        Each says more than the one before.
    mistakes : function, optional
        For a value: takes the numbers of `given`, returns a list of (wrong value, probable
        cause).  For a function: returns a list of (wrong function, probable cause).
    inputs : function, optional
        Given a NumPy generator, returns a list of argument tuples; makes it a function's task.
        The last ones are edge cases.
    rtol, atol : float
    dtype : NumPy dtype, optional
    question : str
        Text with a place in braces for each number of `given`.
    given : dict
        The numbers of the book's own question.
    draw : function, optional
        Given a NumPy generator, returns other numbers under the same names, for a class.
    """

    name: str
    right: object
    hints: tuple = ()
    mistakes: object = None
    inputs: object = None
    rtol: float = 1e-6
    atol: float = 0.0
    dtype: object = None
    seed: int = 0
    question: str = ""
    given: object = None
    draw: object = None

    @property
    def is_function(self):
        """Whether a function is asked for, not a value."""
        return self.inputs is not None

    def random(self, seed):
        """A generator of this task's own for `seed`."""
        return np.random.default_rng([zlib.crc32(self.name.encode()), self.seed, seed])

    def numbers(self, class_seed=0):
        """The question's numbers: the book's for seed 0, otherwise drawn for the class."""
        if class_seed == 0 or self.draw is None:
            return dict(self.given or {})
        return self.draw(self.random(class_seed))

    def cases(self, seed=0):
        """The inputs that a function is tried on, as plain values."""
        return [plain(tuple(arguments)) for arguments in self.inputs(self.random(seed))]

    def verdict(self, answer, seed=0, class_seed=0):
        """Compare an answer; never raises."""
        with originals() as replaced:
            if replaced:
                names = ", ".join(replaced[:3])
                return Verdict(
                    PATCHED,
                    f"Something replaced {names}, so no check can be trusted. Rename what you "
                    f"called so, restart the kernel, and run the cells again.",
                )
            try:
                if not self.is_function or not callable(answer):
                    return self.judge_value(plain(answer), class_seed)
                cases = self.cases(seed)
                return self.judge(cases, collect(answer, cases))
            except Exception as error:  # an answer may hold anything
                return Verdict(RAISED, f"Checking it raised {type(error).__name__}: {error}")

    def judge_value(self, answer, class_seed=0):
        """Compare a plain value with the right one."""
        if is_untouched(answer):
            return compare(answer, 0)
        if self.is_function or isinstance(answer, Unreadable):
            what = "a function" if self.is_function else "a plain value"
            kind = answer.kind if isinstance(answer, Unreadable) else type(answer).__name__
            return Verdict(WRONG_TYPE, f"The answer is {what}; yours is a {kind}.")
        numbers = self.numbers(class_seed)
        found = self._compare(answer, self.right(**numbers))
        if found.status == WRONG_NUMBERS and self.mistakes is not None:
            for wrong, cause in self.mistakes(**numbers):
                if self._compare(answer, wrong):
                    return _because(found, cause)
        return found

    def judge(self, cases, outcomes):
        """Compare what a function did with what the reference does; stops at the first fault."""
        outcomes, done = iter(outcomes), []
        for number, outcome in enumerate(outcomes):
            done.append(outcome)
            found = self._judge_one(cases[number], outcome)
            if found:
                continue
            where = "" if found.status == NOT_ATTEMPTED else f"On input {number}: "
            found = Verdict(found.status, where + found.message)
            if found.status == WRONG_NUMBERS and self.mistakes is not None:
                return self._explained(found, number, cases, done + list(outcomes))
            return found
        if len(done) < len(cases):
            return Verdict(RAISED, f"It ended on input {len(done)}.")
        return Verdict(RIGHT, "Right.")

    def _judge_one(self, arguments, outcome):
        if outcome.raised == "NotImplementedError":
            return compare(None, 0)
        if outcome.raised is not None:
            return Verdict(RAISED, f"your function raised {outcome.raised}: {outcome.message}")
        if isinstance(outcome.value, Unreadable):
            kind = outcome.value.kind
            return Verdict(WRONG_TYPE, f"your function returned a {kind}, not plain numbers.")
        if is_untouched(outcome.value):
            return Verdict(NOT_ATTEMPTED, "Your function returns nothing yet.")
        if outcome.changed:
            return Verdict(MUTATED, "your function changed its argument.")
        return self._compare(outcome.value, self.right(*plain(arguments)))

    def _explained(self, found, number, cases, outcomes):
        """The verdict with the known mistake that gives the same on the most inputs, if one
        gives the same on the input that went wrong first."""
        best, most = None, 0
        for wrong, cause in self.mistakes():
            same = [
                self._gives(wrong, case, outcome)
                for case, outcome in zip(cases, outcomes, strict=False)
            ]
            if same[number] and sum(same) > most:
                best, most = cause, sum(same)
        return found if best is None else _because(found, best)

    def _gives(self, wrong, arguments, outcome):
        if outcome.raised is not None or isinstance(outcome.value, Unreadable):
            return False
        try:
            with np.errstate(all="ignore"):
                return bool(self._compare(outcome.value, wrong(*plain(arguments))))
        except Exception:  # a mistake may be one that cannot take this input
            return False

    def _compare(self, answer, right):
        return compare(answer, right, self.rtol, self.atol, self.dtype)


def _because(found, cause):
    return Verdict(found.status, f"{found.message} Probable cause: {cause}.", cause)


def register(task):
    """Add a task under its name."""
    if task.name in TASKS:
        raise BadArgument(f"There are two tasks called {task.name!r}.")
    TASKS[task.name] = task
    return task


def find(name):
    """The task `name`; loads the chapters' tasks on first use."""
    load()
    if name not in TASKS:
        chapter = str(name).split(".")[0]
        near = [known for known in TASKS if known.split(".")[0] == chapter]
        which = (
            f"This chapter has: {', '.join(near)}."
            if near
            else "A name is a chapter, a point and a word, such as 02.scale or ex02.softmax."
        )
        raise BadArgument(f"There is no check {name!r}.{did_you_mean(name, list(TASKS))} {which}")
    return TASKS[name]


def load():
    """Import every module of quick checks and of exercises, so that `TASKS` holds them all."""
    from . import checks, exercises

    for room in (checks, exercises):
        for module in pkgutil.iter_modules(room.__path__):
            importlib.import_module(f"{room.__name__}.{module.name}")
