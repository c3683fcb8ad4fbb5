"""A task: its question, how the right answer is computed, and what usually goes wrong."""

import copy
import importlib
import pkgutil
from dataclasses import dataclass, field

import numpy as np

from ..errors import BadArgument
from .compare import MUTATED, RAISED, RIGHT, WRONG_NUMBERS, Verdict, compare, is_untouched

TASKS = {}


@dataclass(frozen=True)
class Task:
    """One thing to answer.

    Attributes
    ----------
    name : str
        ``"02.softmax"``: the chapter's number and a word.
    right : function
        For a value: takes nothing and returns it, computed from the engine where it can be.
        For a function: the reference itself.
    hints : tuple of str
        Each says more than the one before.
    mistakes : function, optional
        For a value: returns a list of (wrong value, probable cause).  For a function: a list of
        (wrong function, probable cause).
    inputs : function, optional
        Given a NumPy generator, returns a list of argument tuples; makes it a function's task.
    rtol, atol : float
    dtype : NumPy dtype, optional
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
    extra: dict = field(default_factory=dict)

    def verdict(self, answer):
        """Compare an answer; never raises."""
        if is_untouched(answer):
            return compare(answer, 0)
        try:
            return self._function(answer) if self.inputs is not None else self._value(answer)
        except Exception as error:  # an answer may hold anything
            return Verdict(RAISED, f"Checking it raised {type(error).__name__}: {error}")

    def _compare(self, answer, right):
        return compare(answer, right, self.rtol, self.atol, self.dtype)

    def _value(self, answer):
        found = self._compare(answer, self.right())
        if found.status == WRONG_NUMBERS and self.mistakes is not None:
            for wrong, cause in self.mistakes():
                if self._compare(answer, wrong):
                    return Verdict(WRONG_NUMBERS, f"{found.message} Probable cause: {cause}.")
        return found

    def _function(self, answer):
        """Call the answer on fresh copies of seeded inputs, and compare with the reference."""
        if not callable(answer):
            kind = type(answer).__name__
            return Verdict("wrong type", f"The answer is a function; yours is a {kind}.")
        for number, arguments in enumerate(self.inputs(np.random.default_rng(self.seed))):
            right = self.right(*copy.deepcopy(arguments))
            given = copy.deepcopy(arguments)
            try:
                mine = answer(*given)
            except NotImplementedError:
                return compare(None, 0)
            except Exception as error:
                message = f"On input {number} your function raised {type(error).__name__}: {error}"
                return Verdict(RAISED, message)
            if is_untouched(mine):
                return Verdict("not attempted", "Your function returns nothing yet.")
            if not _unchanged(given, arguments):
                return Verdict(MUTATED, f"On input {number} your function changed its argument.")
            found = self._compare(mine, right)
            if not found:
                message = f"On input {number}: {found.message}"
                if found.status == WRONG_NUMBERS:
                    message += self._cause(arguments, mine)
                return Verdict(found.status, message)
        return Verdict(RIGHT, "Right.")

    def _cause(self, arguments, mine):
        for wrong, cause in self.mistakes() if self.mistakes is not None else ():
            with np.errstate(all="ignore"):
                if self._compare(mine, wrong(*copy.deepcopy(arguments))):
                    return f" Probable cause: {cause}."
        return ""


def _unchanged(a, b):
    """Whether two tuples of arguments hold the same, arrays by their bytes."""
    for x, y in zip(a, b, strict=True):
        if isinstance(x, np.ndarray):
            if x.shape != y.shape or x.dtype != y.dtype or x.tobytes() != y.tobytes():
                return False
        elif isinstance(x, list | tuple | int | float | str | bytes) and x != y:
            return False
    return True


def register(task):
    """Add a task under its name."""
    if task.name in TASKS:
        raise BadArgument(f"There are two tasks called {task.name!r}.")
    TASKS[task.name] = task
    return task


def find(name):
    """The task `name`; loads the chapters' tasks on first use."""
    from . import checks

    for module in pkgutil.iter_modules(checks.__path__):
        importlib.import_module(f"{checks.__name__}.{module.name}")
    if name not in TASKS:
        near = [known for known in TASKS if known[:2] == str(name)[:2]]
        raise BadArgument(
            f"There is no check {name!r}. This chapter has: {', '.join(near or sorted(TASKS))}."
        )
    return TASKS[name]
