"""What an answer did with given inputs: values it returned, what it raised, what it changed.

`collect` runs an answer and looks at nothing; `Task.judge` looks and runs nothing of the
learner's.  So the two can be in different processes.
"""

import builtins
from dataclasses import dataclass

from .plain import Unreadable, pack, plain, same, unpack


@dataclass(frozen=True)
class Outcome:
    """One call.

    Attributes
    ----------
    value : plain value
    raised : str or None
        Name of the exception, if Python or NumPy defined it.
    message : str
        What the exception said.  It may hold the input, so only the learner may see it.
    changed : bool
        Whether the call changed its arguments.
    """

    value: object = None
    raised: str | None = None
    message: str = ""
    changed: bool = False

    def pack(self):
        """As JSON; without the message, which has no reader where this travels."""
        return {"value": pack(self.value), "raised": self.raised, "changed": self.changed}

    @classmethod
    def unpack(cls, packed):
        raised = packed["raised"]
        return cls(
            unpack(packed["value"]), None if raised is None else str(raised)[:60],
            "", bool(packed["changed"]),
        )  # fmt: skip


def exception_name(error):
    """The name of an exception that Python defines; a class of the learner's own may be called
    anything, so it is not named."""
    kind = type(error)
    return kind.__name__ if getattr(builtins, kind.__name__, None) is kind else "an exception"


def collect(answer, cases):
    """Call `answer` on fresh copies of each case.

    Parameters
    ----------
    answer : callable, or anything
    cases : list of tuple
        Plain arguments, one tuple a call.

    Yields
    ------
    Outcome
        For a value that is no function, one `Unreadable` outcome.
    """
    for arguments in cases:
        if not callable(answer):
            yield Outcome(value=Unreadable("value"))
            return
        given = plain(arguments)
        try:
            value = answer(*given)
            outcome = Outcome(plain(value), changed=not same(plain(given), plain(arguments)))
        except Exception as error:
            outcome = Outcome(None, exception_name(error), _message(error))
        yield outcome


def _message(error):
    try:
        return str(error)
    except Exception:
        return ""
