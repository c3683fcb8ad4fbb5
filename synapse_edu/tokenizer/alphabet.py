"""The GPT-2 byte alphabet: 256 printable characters that stand for the 256 bytes.

A byte-level vocabulary is a text file, and text files are awkward places for spaces, controls and
broken UTF-8.  GPT-2 therefore writes each byte as one printable character: bytes that already are
a visible Latin-1 character stand for themselves, the other 68 take U+0100, U+0101, ... in order.

>>> to_alphabet(b" hi")
['Ġ', 'h', 'i']
>>> from_alphabet("Ġhi")
b' hi'
"""

_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [b for b in range(256) if b not in _VISIBLE]

CHARACTERS = [""] * 256  # byte -> its character
for _byte in _VISIBLE:
    CHARACTERS[_byte] = chr(_byte)
for _offset, _byte in enumerate(_HIDDEN):
    CHARACTERS[_byte] = chr(0x100 + _offset)

BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}  # character -> its byte

SYMBOLS = [character.encode("utf-8") for character in CHARACTERS]  # byte -> its token text
"""Token texts are kept as bytes, so a byte's symbol is its character in UTF-8 (one or two bytes).
"""


def to_alphabet(raw):
    """The characters that stand for the bytes `raw`, one a byte."""
    return [CHARACTERS[byte] for byte in raw]


def from_alphabet(text):
    """The bytes behind `text`; a KeyError for a character outside the alphabet."""
    return bytes(BYTES[character] for character in text)
