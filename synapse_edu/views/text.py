"""Text from a model, made safe and visible: nothing in it can act as HTML or hide."""

import html
import math

from ..tokenizer.visible import SPACE, visible

__all__ = ["SPACE", "number", "safe", "short", "visible"]


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
