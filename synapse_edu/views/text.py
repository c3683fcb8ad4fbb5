"""Text from a model, made safe and visible: nothing in it can act as HTML or hide."""

import html
import math
import unicodedata

SPACE = "\N{OPEN BOX}"  # ␣


def visible(token):
    """A token as text in which every character can be seen.

    A space becomes ``␣``, a control character its picture (``␊`` for a line feed), and what has
    no picture its number: ``⟨U+200B⟩`` for a character, ``⟨C3⟩`` for a byte that is no whole
    UTF-8 character.  The result is plain text; `safe` makes it HTML.

    Parameters
    ----------
    token : bytes or str

    Returns
    -------
    str
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


def short(token, width=12):
    """`visible`, cut to `width` characters with an ellipsis."""
    text = visible(token)
    return text if len(text) <= width else text[: width - 1] + "…"


def safe(text):
    """Plain text as HTML, for an element or a quoted attribute."""
    return html.escape(str(text), quote=True)


def number(value, digits=4):
    """A number in `digits` significant digits; infinities and NaN in words that can be read."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}g}"
