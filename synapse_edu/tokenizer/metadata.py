"""Reading a vocabulary's keys: each of exactly the type that the format asks for, or an error.

The mapping holds plain values.  A value read from a GGUF file is a NumPy scalar or array of the
file's own type, so a 32-bit number in place of a bool is seen; Python's own int, bool, float and
list are accepted too, for vocabularies made by hand.
"""

from collections.abc import Sequence

import numpy as np

from ..errors import TokenizerProblem

PREFIX = "tokenizer.ggml."


def _wrong(key, wanted, value):
    kind = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    return TokenizerProblem(
        f"{key} should be {wanted}, but is {kind}. The file was written wrongly; convert it again."
    )


def string(mapping, key, default=None):
    """A string, or `default` when the key is missing."""
    value = mapping.get(key, default)
    if value is not None and not isinstance(value, str):
        raise _wrong(key, "a string", value)
    return value


def boolean(mapping, key, default):
    """A bool, or `default`."""
    value = mapping.get(key, default)
    if not isinstance(value, (bool, np.bool_)):
        raise _wrong(key, "true or false (a GGUF bool)", value)
    return bool(value)


def token_id(mapping, key):
    """An unsigned 32-bit id, or None when the key is missing."""
    value = mapping.get(key)
    if value is None:
        return None
    plain = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32
    if not (plain or isinstance(value, np.uint32)):
        raise _wrong(key, "an unsigned 32-bit number", value)
    return int(value)


def texts(mapping, key):
    """A list of bytes from an array of strings, or None when the key is missing."""
    value = mapping.get(key)
    if value is None:
        return None
    if isinstance(value, (str, bytes, np.ndarray)) or not isinstance(value, Sequence):
        raise _wrong(key, "an array of strings", value)
    items = list(value)
    for position, item in enumerate(items):
        if type(item) is not bytes:
            if not isinstance(item, str):
                raise _wrong(f"{key}[{position}]", "a string", item)
            items[position] = item.encode("utf-8")
    return items


def numbers(mapping, key, n, dtypes):
    """The first `n` numbers of an array whose dtype is among `dtypes`, or None if missing."""
    value = mapping.get(key)
    if value is None:
        return None
    wanted = "an array of " + " or ".join(np.dtype(d).name for d in dtypes)
    if isinstance(value, (list, tuple)):
        try:
            value = np.array(value, dtypes[0])  # (len(value),)
        except (ValueError, TypeError, OverflowError):
            raise _wrong(key, wanted, value) from None
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise _wrong(key, wanted, value)
    if value.dtype.newbyteorder("=") not in [np.dtype(d) for d in dtypes]:
        raise _wrong(key, wanted, value)
    if len(value) < n:
        raise TokenizerProblem(
            f"{key} has {len(value)} entries for {n} tokens; the file is damaged or was written "
            f"wrongly."
        )
    return value[:n]
