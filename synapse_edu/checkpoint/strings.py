"""StringArray: an array of strings that stays in the file until an element is asked for."""

from array import array
from collections.abc import Sequence
from itertools import pairwise

import numpy as np


class StringArray(Sequence):
    """The strings of one metadata array, as bytes.

    A Llama-3 vocabulary has 128 256 tokens and 280 147 merges.  Only where each one starts is
    kept, eight bytes like the length in front of it; the text is read from the memory map.

    Parameters
    ----------
    buffer : memoryview
        The file.
    starts : array of int64
        Byte position of each string's length in `buffer`, and of the end of the last string.
    """

    def __init__(self, buffer, starts):
        self._buffer, self._starts = buffer, starts

    def __len__(self):
        return len(self._starts) - 1

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]  # a negative index counts from the end
        return bytes(self._buffer[self._starts[i] + 8 : self._starts[i + 1]])

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """All strings as a list of bytes: one copy of the region, then slices of it."""
        first = self._starts[0]
        region = bytes(self._buffer[first : self._starts[-1]])
        return [region[a - first + 8 : b - first] for a, b in pairwise(self._starts)]

    def __eq__(self, other):
        return self.tolist() == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"StringArray of {len(self)} strings"


def read_string_array(cursor, count):
    """Walk over `count` strings, each a 64-bit length and its bytes."""
    position, size, length_at = cursor.position, cursor.size, cursor.length_at
    starts = array("q", [position])
    for i in range(count):
        if position + 8 > size:
            cursor.fail(f"is truncated: string {i} of {count} starts beyond the end of the file")
        position += 8 + length_at(position)
        if position > size:
            cursor.fail(f"is truncated or damaged: string {i} of {count} ends beyond the file")
        starts.append(position)
    cursor.position = position
    return StringArray(cursor.buffer, starts)


def as_list(value):
    """A plain list from a StringArray, a NumPy array or a list."""
    return value.tolist() if isinstance(value, StringArray | np.ndarray) else list(value)
