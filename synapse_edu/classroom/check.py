"""check(), insist(), question(), hint(), solution() and progress(): what a learner calls."""

import textwrap

from ..errors import BadArgument
from . import progress as record
from .tasks import find

_class_seed = 0


def use_class_seed(seed):
    """Ask the questions with the numbers of one class.

    Parameters
    ----------
    seed : int
        0 for the book's own numbers.  ``synapse-edu exercises release --class-seed`` writes it.
    """
    global _class_seed
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise BadArgument(f"A class seed is a whole number of at least 0, not {seed!r}.")
    _class_seed = seed


def class_seed():
    """The seed that `use_class_seed` set."""
    return _class_seed


class Result:
    """A verdict as a notebook shows it; true if the answer is right."""

    def __init__(self, name, verdict):
        self.name, self.status, self.message = name, verdict.status, verdict.message

    def __bool__(self):
        return self.status == "right"

    def __repr__(self):
        mark = {"right": "✓", "not attempted": "·"}.get(self.status, "✗")
        return f"{mark} {self.name}: {self.message}"


class NotRight(AssertionError):
    """Raised by `insist`, so that a grader sees that the cell failed."""

    def _render_traceback_(self):
        """The lines that IPython prints in place of a traceback."""
        return [str(self)]


def check(name, answer=None, seed=None):
    """Check an answer.

    Parameters
    ----------
    name : str
        Such as ``"02.scale"``.
    answer : anything
        A value, or a function where the task asks for one.
    seed : int, optional
        Try a function on the inputs drawn from this seed; by default on those of the class.

    Returns
    -------
    Result
        Prints one line: not attempted, what is wrong, or right.

    Examples
    --------
    >>> check("01.group", ...)
    · 01.group: Not attempted yet: put your answer in place of the dots.
    """
    seed = _class_seed if seed is None else seed
    result = Result(name, find(name).verdict(answer, seed, _class_seed))
    record.note(name, result.status)
    return result


def insist(name, answer=None, seed=None):
    """`check`, but a wrong answer raises: the graded cells of the exercises call it.

    Raises
    ------
    NotRight
        With the line that `check` would show.
    """
    result = check(name, answer, seed)
    if not result:
        raise NotRight(repr(result))
    print(result)


def question(name):
    """Print the question of a task with this class's numbers, and return the numbers by name."""
    task = find(name)
    numbers = task.numbers(_class_seed)
    print(textwrap.fill(task.question.format(**numbers), 88))
    return numbers


def hint(name, n=1):
    """The `n`-th hint of a task; each says more than the one before."""
    task = find(name)
    if not task.hints:
        raise BadArgument(f"{name} has no hints.")
    if not isinstance(n, int) or not 1 <= n <= len(task.hints):
        raise BadArgument(f"{name} has hints 1 to {len(task.hints)}.")
    print(task.hints[n - 1].format(**task.numbers(_class_seed)))


def solution(name):
    """Print the solution of an exercise, once it has been tried.

    Raises
    ------
    BadArgument
        If `check` has not seen an attempt yet, or there is no solution of that name.
    """
    from . import editions

    find(name)
    if name not in record.load():
        raise BadArgument(
            f"Try {name} first: the solution is shown after the first attempt that was checked. "
            f"hint({name!r}) may help."
        )
    print(editions.solution_of(name))


def progress():
    """What has been answered so far on this computer, as a table."""
    return record.Table(record.load())
