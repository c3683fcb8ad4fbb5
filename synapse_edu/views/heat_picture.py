"""The heatmap's picture: shades that are sizes too, the mask hatched, a legend from the data."""

import numpy as np

from .text import number, safe, short

LEVELS = 8  # shades, which are sizes too


class Scale:
    """From values to `LEVELS` shades, with limits taken from what is shown.

    Probabilities start at 0; scores at the lowest one shown.
    """

    def __init__(self, shown, stage):
        finite = shown[np.isfinite(shown)]
        self.high = float(finite.max()) if finite.size else 0.0
        self.low = float(finite.min()) if finite.size and stage == "scores" else 0.0

    def level(self, values):
        """Shade of each value, 0 to LEVELS - 1; -1 where it is masked or not a number."""
        values = np.asarray(values, np.float64)
        span = self.high - self.low
        with np.errstate(invalid="ignore"):
            part = (values - self.low) / span if span > 0 else np.zeros_like(values)
            level = np.minimum(np.nan_to_num(part * LEVELS, nan=0, neginf=0), LEVELS - 1)
        return np.where(np.isfinite(values), level.astype(int), -1)

    def edges(self):
        """The values at which one shade ends and the next begins, (LEVELS + 1,)."""
        return np.linspace(self.low, self.high, LEVELS + 1)


def grid(tokens, cell, weights, rows, columns, scale, label):
    """The grid as SVG: squares by shade and size, the mask hatched, the chosen cell framed.

    Parameters
    ----------
    tokens : sequence of bytes
    cell : (int, int)
        Row and column of the chosen cell.
    weights : ndarray, shape (T, T)
    rows, columns : (int, int)
        First and last+1 of the queries and of the keys that are shown.
    scale : Scale
    label : str
        The picture in words.
    """
    n_rows, n_columns = rows[1] - rows[0], columns[1] - columns[0]
    size = 22 if max(n_rows, n_columns) <= 20 else 14 if max(n_rows, n_columns) <= 40 else 11
    left, top = 96, 84
    body = [
        f'<path class="se-stroke" d="{_mask(rows, columns, size)}"/>',
        *_squares(weights[slice(*rows), slice(*columns)], rows, columns, scale, size),
        f'<path class="se-stroke" d="M0 0H{n_columns * size}V{n_rows * size}H0Z"/>',
    ]
    for i in range(n_rows):
        strong = ' class="se-strong"' if rows[0] + i == cell[0] else ""
        text = safe(short(tokens[rows[0] + i]))
        body.append(
            f'<text{strong} x="-5" y="{(i + 0.5) * size + 4:g}" text-anchor="end">{text}</text>'
        )
    for j in range(n_columns):
        strong = ' class="se-strong"' if columns[0] + j == cell[1] else ""
        text = safe(short(tokens[columns[0] + j], 10))
        x = (j + 0.5) * size + 4
        body.append(f'<text{strong} transform="translate({x:g} -5) rotate(-90)">{text}</text>')
    x, y = (cell[1] - columns[0]) * size, (cell[0] - rows[0]) * size
    body.append(f'<rect class="se-cursor" x="{x}" y="{y}" width="{size}" height="{size}"/>')
    width, height = left + n_columns * size + 8, top + n_rows * size + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'data-grid="{size}" width="{width}" height="{height}" '
        f'viewBox="{-left} {-top} {width} {height}">{"".join(body)}</svg>'
    )


def _mark(level, cell):
    """Side and opacity of a shade's square in a cell: a higher shade is larger and darker."""
    part = 0.7 * level / (LEVELS - 1)
    return cell * (0.25 + part), 0.3 + part


def _squares(shown, rows, columns, scale, size):
    """One path for each shade, of all cells that have it; a higher shade is larger too."""
    levels = scale.level(shown)  # (rows, columns)
    i, j = np.indices(levels.shape)
    levels = np.where(j + columns[0] > i + rows[0], -1, levels)
    for level in range(LEVELS):
        side, opacity = _mark(level, size)
        edge = (size - side) / 2
        square = f"h{side:.4g}v{side:.4g}h{-side:.4g}z"
        cells = np.argwhere(levels == level).tolist()
        if cells:
            where = "".join(
                f"M{c * size + edge:.5g} {r * size + edge:.5g}{square}" for r, c in cells
            )
            yield f'<path class="se-fill" fill-opacity="{opacity:.3g}" d="{where}"/>'


def _mask(rows, columns, size):
    """Diagonal strokes through every cell above the diagonal, one for each anti-diagonal."""
    n_rows, n_columns = rows[1] - rows[0], columns[1] - columns[0]
    strokes = []
    for k in range(n_rows + n_columns - 1):
        first = max(0, k - n_columns + 1)
        # Cell (i, k - i) is masked where k - i + columns[0] > i + rows[0].
        last = min(n_rows - 1, k, (k + columns[0] - rows[0] - 1) // 2)
        if first <= last:
            strokes.append(
                f"M{(k - last) * size} {(last + 1) * size}L{(k - first + 1) * size} {first * size}"
            )
    return "".join(strokes)


def legend(scale):
    """Each shade with the value that it starts at, and the mask, as SVG."""
    edges, cell = scale.edges(), 14
    body = []
    for level in range(LEVELS):
        side, opacity = _mark(level, cell)
        edge = (cell - side) / 2
        body.append(
            f'<rect class="se-fill" fill-opacity="{opacity:.3g}" '
            f'x="{level * 70 + edge:.4g}" y="{edge:.4g}" width="{side:.4g}" height="{side:.4g}"/>'
            f'<text x="{level * 70 + 18}" y="11">{safe(number(edges[level], 2))}</text>'
        )
    x = LEVELS * 70
    body.append(f'<text x="{x}" y="11">to {safe(number(edges[-1], 2))}</text>')
    body.append(
        f'<path class="se-stroke" d="M{x + 75} 0h14v14h-14zM{x + 75} 14l14 -14"/>'
        f'<text x="{x + 94}" y="11">masked</text>'
    )
    what = f"Shades from {number(scale.low, 2)} to {number(scale.high, 2)}, from low to high"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(what)}" '
        f'width="{x + 150}" height="18" viewBox="0 -1 {x + 150} 18">{"".join(body)}</svg>'
    )
