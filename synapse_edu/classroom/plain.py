"""Plain values: what an answer holds, copied out of whatever it is, and written as JSON.

An answer is untrusted.  A subclass may answer every comparison with True, or do something when
it is read.  So answers are copied into plain Python values and plain arrays before anything
looks at them, by functions that were fetched when this module was loaded.  The same form travels
between the grader and the process that runs a submission; no pickle, nothing that runs code.
"""

import base64
from dataclasses import dataclass

import numpy as np

_array, _ndarray, _frombuffer, _tobytes = np.array, np.ndarray, np.frombuffer, np.ndarray.tobytes
_SCALARS = frozenset(np.dtype(code).type for code in "?bBhHiIlLqQefd")
_bool, _true = np.bool_, np.True_
_SIMPLE = (bool, int, float, str, bytes)
_DEPTH, _LENGTH, _BYTES = 6, 1_000_000, 64 * 1024**2
_KINDS = "biuf"


@dataclass(frozen=True)
class Unreadable:
    """Stands for something that is no plain value; `kind` is what the learner reads."""

    kind: str


def plain(value, depth=0):
    """A copy of `value` made of plain values only.

    Parameters
    ----------
    value : anything
        Nothing of it is called: no comparison, no conversion, no iteration of its own.

    Returns
    -------
    None, ..., bool, int, float, str, bytes, list, tuple, dict, ndarray or Unreadable
        NumPy's numbers become arrays without axes.  A subclass of ndarray becomes the array
        beneath it; any other subclass is Unreadable.
    """
    kind = type(value)
    if value is None or value is Ellipsis or kind in _SIMPLE:
        return value
    if value is NotImplemented:
        return None
    if kind is _bool:
        return value is _true
    if kind in _SCALARS or issubclass(kind, _ndarray):
        return _plain_array(value)
    if depth < _DEPTH and kind in (list, tuple, dict) and len(value) <= _LENGTH:
        if kind is dict:
            pairs = [(plain(k, depth + 1), plain(v, depth + 1)) for k, v in value.items()]
            if all(type(k) in (*_SIMPLE, tuple) for k, _ in pairs):
                return dict(pairs)
        else:
            return kind([plain(item, depth + 1) for item in value])
    return Unreadable(_name(kind))


def _plain_array(value):
    copy = _array(value, copy=True, subok=False)
    if copy.dtype.kind not in _KINDS or copy.dtype.itemsize > 8 or copy.nbytes > _BYTES:
        return Unreadable(f"array of {copy.dtype}")
    return copy


def _name(kind):
    """A type's name, if Python or NumPy gave it; a name of the learner's own says nothing."""
    known = type.__getattribute__(kind, "__module__") in ("builtins", "numpy", "types")
    return type.__getattribute__(kind, "__name__") if known else "something else"


def same(a, b):
    """Whether two plain values hold the same, arrays by their bytes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, _ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and _tobytes(a) == _tobytes(b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b or (a != a and b != b)


def pack(value):
    """A plain value as what JSON can hold."""
    if isinstance(value, _ndarray):
        data = base64.b64encode(_tobytes(value)).decode("ascii")
        return {"array": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, Unreadable):
        return {"unreadable": value.kind}
    if value is Ellipsis:
        return {"dots": True}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if type(value) in (int, float):
        return {type(value).__name__: repr(value)}  # exact, and NaN and infinity too
    if isinstance(value, list | tuple):
        return {type(value).__name__: [pack(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k), pack(v)] for k, v in value.items()]}
    return value  # None, bool, str


def unpack(packed):
    """The plain value that `pack` wrote; ValueError for anything that it did not write."""
    if packed is None or isinstance(packed, bool | str):
        return packed
    try:
        if set(packed) == {"array", "dtype", "shape"}:
            return _unpack_array(packed)
        ((kind, inner),) = packed.items()
        simple = {
            "unreadable": lambda: Unreadable(str(inner)),
            "dots": lambda: Ellipsis,
            "bytes": lambda: base64.b64decode(inner),
            "int": lambda: int(inner),
            "float": lambda: float(inner),
            "list": lambda: [unpack(item) for item in inner],
            "tuple": lambda: tuple(unpack(item) for item in inner),
            "dict": lambda: {unpack(k): unpack(v) for k, v in inner},
        }
        return simple[kind]()
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"no packed value: {type(problem).__name__}") from None


def _unpack_array(packed):
    dtype = np.dtype(packed["dtype"])
    if dtype.kind not in _KINDS:
        raise ValueError("a dtype that is not written")
    flat = _frombuffer(base64.b64decode(packed["array"]), dtype)
    return flat.reshape(packed["shape"]).copy()
