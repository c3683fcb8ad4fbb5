"""Whether the functions that a check stands on are still the ones that it was loaded with.

A notebook can replace anything: ``np.mean``, ``abs``, a function of this package.  Often that is
an accident (a variable named like a function).  During a check the originals are put back, and
the verdict says what was replaced.  This keeps accidents and easy tricks from passing.  It is no
wall: the wall is that a submission is graded in another process than the one that runs it.
"""

import builtins
import math
import sys
import types
from contextlib import contextmanager

import numpy as np

_BUILTINS = (
    "abs all any bool bytes callable dict enumerate float getattr int isinstance issubclass len "
    "list max min range repr round set sorted str sum tuple type zip"
).split()
_ROOM = __name__.rsplit(".", 1)[0]  # this room of the package


def _watched():
    """(module, name, value) of every function that may not change."""
    rows = [(builtins, name, getattr(builtins, name)) for name in _BUILTINS]
    modules = [math, np, np.linalg, np.random]
    modules += [m for name, m in sorted(sys.modules.items()) if name.startswith(_ROOM)]
    for module in modules:
        rows += [(module, name, value) for name, value in vars(module).items() if callable(value)]
    for room in [m for m in modules if m.__name__.startswith(_ROOM)]:
        for kind in [v for v in vars(room).values() if isinstance(v, type)]:
            if kind.__module__.startswith(_ROOM):
                rows += [(kind, k, v) for k, v in vars(kind).items() if callable(v)]
    return [row for row in rows if row[0] is not sys.modules[__name__]]


def _foreign(module, value):
    """Whether a function of NumPy's was put there by somebody else before we were loaded."""
    home = getattr(value, "__module__", None) or ""
    return module is np and isinstance(value, types.FunctionType) and home == "__main__"


_KEPT = []  # (place, name, value, code)


def remember():
    """Take down the functions as they are; called once the room is loaded."""
    _KEPT[:] = [
        (place, name, value, getattr(value, "__code__", None)) for place, name, value in _watched()
    ]


@contextmanager
def originals():
    """Put every watched function back for the time of a check; yields the names of those that
    had been replaced, and afterwards leaves things as they were found."""
    replaced = []
    for place, name, value, code in _KEPT:
        found = vars(place).get(name)
        if found is not value:
            replaced.append((place, name, found, None))
            setattr(place, name, value)
        elif code is not None and value.__code__ is not code:
            replaced.append((place, name, None, value.__code__))
            value.__code__ = code
        elif _foreign(place, value):
            replaced.append((place, name, found, None))
    try:
        yield [f"{place.__name__}.{name}" for place, name, _, _ in replaced]
    finally:
        for place, name, found, code in replaced:
            if code is not None:
                vars(place)[name].__code__ = code
            elif found is None:
                delattr(place, name)
            else:
                setattr(place, name, found)
