"""StringArray: an array of strings that stays in the file until an element is asked for."""

from array import array
from collections.abc import Sequence

import numpy as np


class StringArray(Sequence):
    """The strings of one metadata array, as bytes.

    A Llama-3 vocabulary has 128 256 tokens and 280 147 merges.  Only where each one starts and
    ends is kept; the bytes are read from the memory map.

    Parameters
    ----------
    buffer : memoryview
        The file.
    starts, ends : array of int64
        Byte positions of each string in `buffer`.
    """

    def __init__(self, buffer, starts, ends):
        self._buffer, self._starts, self._ends = buffer, starts, ends

    def __len__(self):
        return len(self._starts)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return bytes(self._buffer[self._starts[index] : self._ends[index]])

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """All strings as a list of bytes: one copy of the region, then slices of it."""
        if not len(self):
            return []
        first = self._starts[0]
        region = bytes(self._buffer[first : self._ends[-1]])
        return [
            region[start - first : end - first]
            for start, end in zip(self._starts, self._ends, strict=True)
        ]

    def __eq__(self, other):
        return self.tolist() == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"StringArray of {len(self)} strings"


def read_string_array(cursor, count):
    """Walk over `count` strings, each a 64-bit length and its bytes."""
    starts, ends = array("q"), array("q")
    position, size, unpack = cursor.position, cursor.size, cursor.length_at
    for i in range(count):
        if position + 8 > size:
            cursor.fail(f"is truncated: string {i} of {count} starts beyond the end of the file")
        start = position + 8
        position = start + unpack(position)
        if position > size:
            cursor.fail(f"is truncated or damaged: string {i} of {count} ends beyond the file")
        starts.append(start)
        ends.append(position)
    cursor.position = position
    return StringArray(cursor.buffer, starts, ends)


def as_list(value):
    """A plain list from a StringArray, a NumPy array or a list."""
    return value.tolist() if isinstance(value, StringArray | np.ndarray) else list(value)
