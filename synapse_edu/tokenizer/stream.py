"""Text that arrives token by token, without broken characters.

A token may end in the middle of a character: three of an emoji's four bytes, say.  A stream holds
such bytes back until the rest has come.  What never completes is shown as U+FFFD at the end, so
nothing vanishes.

>>> stream = TextStream(lambda token: {1: b"a\\xf0\\x9f", 2: b"\\xa6\\x99b", 3: b"\\xc3"}[token])
>>> stream.push(1), stream.push(2), stream.push(3), stream.flush()
('a', '🦙b', '', '\\ufffd')
"""

import codecs

from .pieces import strip_leading


class TextStream:
    """Turns ids into text, one at a time.

    Parameters
    ----------
    piece : callable
        Id → bytes.
    strip_first : bool
        Drop one space at the very start, where encoding had put one.
    """

    def __init__(self, piece, strip_first=False):
        self._piece = piece
        self._strip = strip_first
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token):
        """The text that this id completes; "" while a character is incomplete."""
        raw = self._piece(token)
        if self._strip and raw:
            raw, self._strip = strip_leading(raw, 1), False
        return self._decoder.decode(raw)

    def flush(self):
        """What is left: U+FFFD for bytes that never became a character."""
        return self._decoder.decode(b"", final=True)

    @property
    def pending(self):
        """Bytes held back until the rest of their character comes."""
        return self._decoder.getstate()[0]
