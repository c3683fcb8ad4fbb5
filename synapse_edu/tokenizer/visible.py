"""Bytes as text in which nothing hides: for chips, tables and pictures of tokens."""

import unicodedata

SPACE = "\N{OPEN BOX}"  # ␣


def visible(token):
    """A token as text in which every character can be seen.

    A space becomes ``␣``, a control character its picture (``␊`` for a line feed), and what has
    no picture its number: ``⟨U+200B⟩`` for a character, ``⟨C3⟩`` for a byte that is no whole
    UTF-8 character.  The result is plain text, not HTML.

    Parameters
    ----------
    token : bytes or str

    Returns
    -------
    str

    >>> visible(b" caf\\xc3")
    '␣caf⟨C3⟩'
    """
    if isinstance(token, str):
        token = token.encode("utf-8", "surrogatepass")
    text = bytes(token).decode("utf-8", "surrogateescape")
    return "".join(map(_visible_character, text)) or "(empty)"


def _visible_character(character):
    code = ord(character)
    if character == " ":
        return SPACE
    if 0xDC80 <= code <= 0xDCFF:  # how surrogateescape stands for one undecodable byte
        return f"⟨{code - 0xDC00:02X}⟩"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    kind = unicodedata.category(character)
    if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"):
        return f"⟨U+{code:04X}⟩"  # would be unseen, or would reorder the text around it
    if kind in ("Mn", "Me"):
        return "\N{DOTTED CIRCLE}" + character  # would otherwise sit on the letter before
    return character
