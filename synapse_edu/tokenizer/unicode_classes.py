r"""One character for each character: text collapsed to the few kinds that splitting asks about.

The families' regexes ask of a character only whether it is white space, a letter, a number,
punctuation, a mark or a symbol, besides naming some ASCII characters.  So every code point is
replaced by one character that keeps that answer: ASCII stays, other white space becomes U+000B,
and the rest one of U+00D0..U+00D5.  The collapsed text has the same length, so a match in it is a
match in the text, and a plain ASCII regex with `\p{L}` written `[A-Za-z\xD2]` is exact.
llama.cpp's fallback does the same (`unicode_regex_split`).

The classes are those of Unicode 15.1, llama.cpp's version.  Python's own tables follow the
interpreter, and newer ones know letters and digits that would change ids.

>>> collapse("né 7٣ 👍")
'nÒ 7Ñ Õ'
"""

from functools import cache

import numpy as np

from . import unicode_table

OTHER, NUMBER, LETTER, PUNCTUATION, MARK, SYMBOL = "\xd0\xd1\xd2\xd3\xd4\xd5"
SPACE = "\x0b"

_RANGES = {
    NUMBER: unicode_table.N,
    LETTER: unicode_table.L,
    PUNCTUATION: unicode_table.P,
    MARK: unicode_table.M,
    SYMBOL: unicode_table.S,
    SPACE: unicode_table.WHITE_SPACE,
}


@cache
def class_table():
    """The collapsed character of every code point: uint8 (0x110000,), read-only."""
    table = np.full(0x110000, ord(OTHER), np.uint8)  # (0x110000,)
    for character, ranges in _RANGES.items():
        for part in ranges.split():
            first, _, last = part.partition("-")
            table[int(first, 16) : int(last or first, 16) + 1] = ord(character)
    table[:128] = np.arange(128, dtype=np.uint8)  # (128,) ASCII stands for itself
    table.flags.writeable = False
    return table


def collapse(text):
    """`text` with every character replaced by its kind; same length, surrogates allowed."""
    if text.isascii():
        return text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")  # (len(text),)
    return class_table()[codes].tobytes().decode("latin-1")
