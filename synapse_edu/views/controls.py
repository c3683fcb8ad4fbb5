"""The controls of the views, as HTML: a choice, and a slider.

``data-set`` names the value that the browser sends back; `frame.View` receives it.
"""

from .text import safe


def select(label, name, options, chosen):
    """A labelled choice.

    Parameters
    ----------
    label, name : str
        What a person reads; what ``View.choose`` is given.
    options : iterable of (value, str)
        Each value with its words.
    chosen : value
        The one that is selected.
    """
    listed = "".join(
        f'<option value="{safe(value)}"{" selected" if value == chosen else ""}>'
        f"{safe(words)}</option>"
        for value, words in options
    )
    return f'<label>{label} <select data-set="{name}">{listed}</select></label>'


def slider(label, name, low, high, value, step=1):
    """A labelled slider from `low` to `high`."""
    return (
        f'<label>{label} <input type="range" data-set="{name}" min="{low}" max="{high}" '
        f'step="{step}" value="{value}"></label>'
    )
