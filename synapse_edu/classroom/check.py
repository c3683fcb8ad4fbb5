"""check(), hint() and progress(): what a learner calls."""

from ..errors import BadArgument
from . import progress as record
from .tasks import find


class Result:
    """A verdict as a notebook shows it; true if the answer is right."""

    def __init__(self, name, verdict):
        self.name, self.status, self.message = name, verdict.status, verdict.message

    def __bool__(self):
        return self.status == "right"

    def __repr__(self):
        mark = {"right": "✓", "not attempted": "·"}.get(self.status, "✗")
        return f"{mark} {self.name}: {self.message}"


def check(name, answer=None):
    """Check an answer.

    Parameters
    ----------
    name : str
        Such as ``"02.scale"``.
    answer : anything
        A value, or a function where the task asks for one.

    Returns
    -------
    Result
        Prints one line: not attempted, what is wrong, or right.

    Examples
    --------
    >>> check("01.group", ...)
    · 01.group: Not attempted yet: put your answer in place of the dots.
    """
    result = Result(name, find(name).verdict(answer))
    record.note(name, result.status)
    return result


def hint(name, n=1):
    """The `n`-th hint of a task; each says more than the one before."""
    hints = find(name).hints
    if not hints:
        raise BadArgument(f"{name} has no hints.")
    if not isinstance(n, int) or not 1 <= n <= len(hints):
        raise BadArgument(f"{name} has hints 1 to {len(hints)}.")
    print(hints[n - 1])


def progress():
    """What has been answered so far on this computer, as a table."""
    return record.Table(record.load())
