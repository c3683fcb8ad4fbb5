"""The header of a GGUF file: metadata and the table of tensors, each bound checked before use.

A GGUF file is untrusted.  Every length and count in it is compared with the bytes that are left
before anything is allocated or read, so a damaged header costs one clear error.

Source: the GGUF specification (ggml's docs/gguf.md).
"""

import struct

import numpy as np

from ..errors import BadArgument, FileProblem, UnsupportedModel
from ..formats.layout import by_type, row_bytes
from .strings import read_string_array

SCALARS = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "?", None, None, "u8", "i8", "f8")
BOOL, STRING, ARRAY = 7, 8, 9
MAX_DIMS = 4
MAX_ELEMENTS = 2**62


class Cursor:
    """A place in the file's bytes that moves forward and never past the end.

    Parameters
    ----------
    buffer : memoryview
    name : str
        The file's name, for messages.
    order : {"<", ">"}
        Byte order of the numbers.
    """

    def __init__(self, buffer, name, order="<", position=0):
        self.buffer, self.name, self.order, self.position = buffer, name, order, position
        self.size = len(buffer)
        self.what = "header"
        self._length = struct.Struct(order + "Q")

    def fail(self, problem):
        raise FileProblem(
            f"{self.name}: {self.what} {problem}. "
            "The file is damaged or incomplete: download or copy it again."
        )

    def length_at(self, position):
        return self._length.unpack_from(self.buffer, position)[0]

    def take(self, n_bytes):
        """The next `n_bytes` as a memoryview."""
        if n_bytes > self.size - self.position:
            self.fail(
                f"is truncated: {n_bytes} bytes are needed at byte {self.position}, "
                f"and {self.size - self.position} are left"
            )
        start = self.position
        self.position += n_bytes
        return self.buffer[start : self.position]

    def number(self, kind):
        """The next number as a NumPy scalar of `kind`, such as ``"u4"``."""
        dtype = np.dtype(kind).newbyteorder(self.order)
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].astype(dtype.newbyteorder("="))

    def integer(self, kind):
        return int(self.number(kind))

    def string(self):
        """The next string as bytes."""
        return bytes(self.take(self.integer("u8")))

    def text(self):
        """The next string as str."""
        raw = self.string()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self.fail(f"is not valid UTF-8 (byte {error.start} of {raw[:40]!r})")

    def array(self, kind, count):
        """The next `count` numbers as an array in the machine's own byte order."""
        dtype = np.dtype(kind).newbyteorder(self.order)
        data = np.frombuffer(self.take(count * dtype.itemsize), dtype)  # (count,)
        return data.astype(dtype.newbyteorder("="))  # (count,), a copy


def read_metadata(cursor, count):
    """Read `count` key/value pairs.

    Returns
    -------
    dict of str → NumPy scalar, str, ndarray or StringArray
        Scalars keep the type that the file gives them.
    """
    cursor.what = "metadata"
    if count > (cursor.size - cursor.position) // 13:  # a pair takes at least 8 + 4 + 1 bytes
        cursor.fail(f"claims {count} keys, more than the file has room for")
    metadata = {}
    for i in range(count):
        cursor.what = f"metadata key {i}"
        key = cursor.text()
        cursor.what = f"metadata key {key!r:.80}"
        if key in metadata:
            cursor.fail("appears twice")
        metadata[key] = _value(cursor, cursor.integer("u4"))
    return metadata


def _value(cursor, kind):
    if kind == STRING:
        return cursor.text()
    if kind == ARRAY:
        return _array(cursor, cursor.integer("u4"), cursor.integer("u8"))
    return (
        _bools(cursor, cursor.number("u1"))
        if kind == BOOL
        else cursor.number(_scalar(cursor, kind))
    )


def _scalar(cursor, kind):
    if kind >= len(SCALARS) or SCALARS[kind] is None:
        cursor.fail(f"has the unknown value type {kind}")
    return SCALARS[kind]


def _bools(cursor, raw):
    if np.any(raw > 1):
        cursor.fail("holds a truth value that is neither 0 nor 1")
    return np.asarray(raw).astype(np.bool_)[()]


def _array(cursor, kind, count):
    if kind == ARRAY:
        cursor.fail("is an array of arrays, which no Llama-family file needs")
    room = cursor.size - cursor.position
    least = 8 if kind == STRING else np.dtype(_scalar(cursor, kind)).itemsize
    if count > room // least:
        cursor.fail(f"claims {count} elements, more than the file has room for (truncated?)")
    if kind == STRING:
        return read_string_array(cursor, count)
    if kind == BOOL:
        return _bools(cursor, cursor.array("u1", count))
    return cursor.array(_scalar(cursor, kind), count)


def read_tensor_table(cursor, count):
    """Read `count` entries: (name, shape in NumPy order, Format, offset, bytes) each."""
    cursor.what = "tensor table"
    if count > (cursor.size - cursor.position) // 32:  # name, dims, one size, type, offset
        cursor.fail(f"claims {count} tensors, more than the file has room for")
    entries, seen = [], set()
    for i in range(count):
        cursor.what = f"tensor {i}"
        name = cursor.text()
        cursor.what = f"tensor {name!r:.80}"
        if name in seen:
            cursor.fail("appears twice")
        seen.add(name)
        entries.append((name, *_entry(cursor, name)))
    return entries


def _entry(cursor, name):
    n_dims = cursor.integer("u4")
    if not 1 <= n_dims <= MAX_DIMS:
        cursor.fail(f"has {n_dims} dimensions; 1 to {MAX_DIMS} are possible")
    sizes = [cursor.integer("u8") for _ in range(n_dims)]  # the fastest-running one first
    total = 1
    for size in sizes:
        total *= size
        if not 0 < total <= MAX_ELEMENTS:
            cursor.fail(f"has the impossible shape {sizes}")
    kind, offset = cursor.integer("u4"), cursor.integer("u8")
    try:
        format = by_type(kind)
        nbytes = total // sizes[0] * row_bytes(format.name, sizes[0])
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{cursor.name}: tensor {name!r:.80}: {error}") from None
    except BadArgument as error:
        raise FileProblem(f"{cursor.name}: tensor {name!r:.80}: {error}") from None
    return tuple(reversed(sizes)), format, offset, nbytes
