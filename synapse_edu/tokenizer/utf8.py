"""Text in, bytes out, and back: strict where a person typed it, lenient where bytes arrive.

llama.cpp reads UTF-8 by its lead bytes alone.  Surrogates and overlong forms are read as they
stand, a byte that starts no sequence becomes U+FFFD by itself, and reading goes on at the next
byte (`unicode_cpts_from_utf8`).  Python's strict decoder does the valid stretches, which is all
of most texts; the rule below is asked only where it stops.

>>> decode_lenient(b"a\\xff\\xe2\\x82z")
'a\\ufffd\\ufffd\\ufffdz'
>>> decode_lenient(b"\\xc0\\x80")
'\\x00'
"""

import codecs

from ..errors import BadArgument, TokenizerProblem

REPLACEMENT = "\ufffd"
_HANDLER = "synapse_edu_lenient"


def as_bytes(text):
    """UTF-8 bytes of a str; bytes are taken as they are.

    Raises
    ------
    BadArgument
        For another type, and for a str that holds a lone surrogate, which has no UTF-8 form.
    """
    if isinstance(text, str):
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as problem:
            raise BadArgument(
                f"The text holds half a surrogate pair, U+{ord(text[problem.start]):04X}, at "
                f"position {problem.start}: it stands for no character. Repair the string, or "
                f"pass bytes."
            ) from None
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise BadArgument(f"Text must be str or bytes, not {type(text).__name__}.")


def _one_sequence(raw, start):
    """(character, next position) at `start`, by llama.cpp's rule; raw[start] is not ASCII."""
    lead = raw[start]
    length = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 30 else 1
    followers = raw[start + 1 : start + length]
    if length == 1 or len(followers) < length - 1 or any(b >> 6 != 0b10 for b in followers):
        return REPLACEMENT, start + 1
    code = lead & (0xFF >> (length + 1))
    for byte in followers:
        code = code << 6 | byte & 0x3F
    if code > 0x10FFFF:
        raise TokenizerProblem(
            f"Bytes {raw[start : start + length].hex(' ').upper()} at offset {start} spell the "
            f"code point {code:#x}, beyond Unicode's last, 0x10FFFF. llama.cpp stops on them too; "
            f"remove them from the text."
        )
    return chr(code), start + length


def _on_error(problem):
    return _one_sequence(problem.object, problem.start)


codecs.register_error(_HANDLER, _on_error)


def decode_lenient(raw):
    """Code points of `raw` as llama.cpp reads them, as a str (it may hold lone surrogates).

    Raises
    ------
    TokenizerProblem
        For a sequence above U+10FFFF (F4 90.. to F7), where llama.cpp aborts.
    """
    return raw.decode("utf-8", _HANDLER)


def encode_lenient(text):
    """UTF-8 of `text`, surrogates included: what llama.cpp writes for each code point."""
    return text.encode("utf-8", "surrogatepass")


def code_point_ends(raw):
    """Where each code point of `decode_lenient(raw)` ends in `raw`: a list of byte offsets.

    >>> code_point_ends("aé".encode() + b"\\xff")
    [1, 3, 4]
    """
    ends, at = [], 0
    while at < len(raw):
        at = at + 1 if raw[at] < 0x80 else _one_sequence(raw, at)[1]
        ends.append(at)
    return ends
