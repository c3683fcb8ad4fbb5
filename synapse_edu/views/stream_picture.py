"""The residual stream along the layers: its length, and what it would predict at each."""

import numpy as np

from .text import number, safe, short

HEIGHT = 70  # of the tallest bar, in pixels


def stream_svg(lengths, guesses, here):
    """Bars of the stream's length, one for each state, with the likeliest token below each.

    Parameters
    ----------
    lengths : ndarray, shape (n_layer + 1,)
        State 0 enters layer 0; state i leaves layer i - 1.
    guesses : list of list of (str, float), or None
        For each state the likeliest next tokens with their probabilities; none behind a NaN.
    here : int
        The state that is looked at.
    """
    finite = np.nan_to_num(np.asarray(lengths, np.float64), posinf=0.0)  # (n_layer + 1,)
    top = float(finite.max()) or 1.0
    step = 46 if len(lengths) <= 12 else 26
    body = []
    for i, length in enumerate(finite):
        tall, x = HEIGHT * length / top, i * step
        strong = ' class="se-strong"' if i == here else ""
        body.append(
            f'<rect class="se-fill" x="{x + 3}" y="{HEIGHT - tall:.4g}" width="{step - 6}" '
            f'height="{tall:.4g}"/><text{strong} x="{x + step / 2:g}" y="{HEIGHT + 13}" '
            f'text-anchor="middle">{"in" if i == 0 else i - 1}</text>'
        )
        if guesses:
            likeliest = guesses[i][0][0] if guesses[i] else "NaN"
            body.append(
                f'<text{strong} transform="translate({x + step / 2 - 4:g} {HEIGHT + 20}) '
                f'rotate(90)">{safe(short(likeliest, 11))}</text>'
            )
    x = here * step
    low = HEIGHT + (98 if guesses else 18)
    body.append(
        f'<rect class="se-cursor" x="{x + 1}" y="-2" width="{step - 2}" height="{low + 2}"/>'
    )
    width = len(lengths) * step + 70
    label = (
        f"Length of the residual stream after each layer, from {number(finite.min(), 3)} to "
        f"{number(top, 3)}"
    )
    scale = f'<text class="se-quiet" x="{len(lengths) * step + 4}" y="10">{number(top, 3)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'width="{width}" height="{low + 8}" viewBox="-2 -4 {width} {low + 8}">'
        f"{''.join(body)}{scale}</svg>"
    )


def stream_table(lengths, guesses):
    """The same numbers as a table."""
    rows = []
    for i, length in enumerate(lengths):
        name = "entering layer 0" if i == 0 else f"after layer {i - 1}"
        tops = ", ".join(f"{text} {p:.3f}" for text, p in guesses[i]) if guesses else ""
        rows.append(
            f'<tr><th scope="row">{name}</th><td>{number(length, 4)}</td>'
            f'<td class="se-text se-tok">{safe(tops)}</td></tr>'
        )
    head = "<tr><th>state</th><th>length</th><th>would predict</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"
