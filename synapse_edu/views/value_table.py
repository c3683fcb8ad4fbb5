"""The value of a step as a small table: its first numbers, and what all of them are like."""

import numpy as np

from .text import number

ROWS, COLUMNS = 4, 8


def value_html(value, what):
    """A float32 array of one or two dimensions as HTML.

    Parameters
    ----------
    value : ndarray, shape (n,) or (rows, n)
    what : str
        What a row is, such as ``"head"``; used when there are several.
    """
    value = np.atleast_2d(np.asarray(value))  # (rows, n)
    rows, columns = value.shape[0], value.shape[-1]
    shown = value.reshape(rows, -1)[:ROWS, :COLUMNS]
    head = "".join(f"<th>{j}</th>" for j in range(shown.shape[1]))
    body = []
    for i, row in enumerate(shown):
        name = f"{what} {i}" if rows > 1 else "value"
        cells = "".join(f"<td>{number(x)}</td>" for x in row)
        body.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    left = []
    if rows > ROWS:
        left.append(f"{rows - ROWS} more rows")
    if columns > COLUMNS:
        left.append(f"{columns - COLUMNS} more columns")
    more = f'<p class="se-soft">and {" and ".join(left)}</p>' if left else ""
    return (
        f"<table><tr><td></td>{head}</tr>{''.join(body)}</table>{more}"
        f'<p class="se-soft">{summary(value)}</p>'
    )


def summary(value):
    """Least, greatest and root mean square of the finite numbers, in words."""
    finite = value[np.isfinite(value)].astype(np.float64)
    if not finite.size:
        return "No finite number."
    rms = np.sqrt(np.mean(finite**2))
    return (
        f"{value.size:,} numbers from {number(finite.min())} to {number(finite.max())}, "
        f"root mean square {number(rms)}."
    )
