"""Formulas in a view: LaTeX → MathML, which a browser shows without any script."""

from functools import cache

from .text import safe


@cache
def mathml(latex):
    """A formula as MathML; as LaTeX in ``<code>`` if it cannot be converted."""
    import latex2mathml.converter

    try:
        return latex2mathml.converter.convert(latex, display="block")
    except Exception:  # whatever the converter stumbles over, the formula can still be read
        return f"<code>{safe(latex)}</code>"
