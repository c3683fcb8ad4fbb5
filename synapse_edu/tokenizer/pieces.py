"""Ids → bytes: each token's piece, and a text put together again.

llama.cpp: `token_to_piece`, `llama_decode_text` and `detokenize`.
"""

import re

from ..errors import TokenizerProblem
from .alphabet import BYTES
from .attributes import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED
from .spm import SPACE
from .utf8 import decode_lenient, encode_lenient

_HEX = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)")


def piece_of(vocabulary, token):
    """The bytes that a token stands for, special tokens shown by their text.

    A normal token of a BPE vocabulary is read back through the byte alphabet; a character outside
    it shows as ``[UNK_BYTE_0x…]``, as in llama.cpp.
    """
    text, bits = vocabulary.tokens[token], int(vocabulary.bits[token])
    if bits & (UNKNOWN | CONTROL | USER_DEFINED):
        return text
    if bits & NORMAL:
        return text.replace(SPACE, b" ") if vocabulary.kind == "spm" else _from_alphabet(text)
    if bits & BYTE:
        return bytes([_byte_value(text)])
    return b""


def _from_alphabet(text):
    out = bytearray()
    for character in decode_lenient(text):
        byte = BYTES.get(character)
        if byte is None:
            code = encode_lenient(character).hex().encode()
            out += b"[UNK_BYTE_0x" + code + text + b"]"
        else:
            out.append(byte)
    return bytes(out)


def _byte_value(text):
    """The number in `<0xHH>`: the two characters after `<0x`, read as C's strtol reads them."""
    if len(text) < 3:
        raise TokenizerProblem(
            f"The byte token {text.decode('utf-8', 'replace')!r} should be written like <0x0A>."
        )
    sign, digits = _HEX.match(text[3:5]).groups()
    value = int(digits or b"0", 16)
    return (-value if sign == b"-" else value) & 0xFF


def strip_leading(piece, n):
    """`piece` without up to `n` spaces at its start."""
    for _ in range(n):
        piece = piece.removeprefix(b" ")
    return piece


def clean_spaces(raw):
    """Close gaps before punctuation and contractions, as detokenizing does for some families.

    Three passes: a space before ``? ! . ,``; both spaces around an apostrophe; a space before
    ``'s 'm 're 've``.  The first byte of the text always stays where a pass starts, unless it is
    that space.

    >>> clean_spaces(b"It 's 5 o ' clock .")
    b"It's 5 o'clock."
    """
    raw = re.sub(rb" (?=[?!.,])", b"", raw)
    raw = re.sub(rb" ' ", b"'", raw)
    return re.sub(rb" (?='(?:[sm]|[rv]e))", b"", raw)
