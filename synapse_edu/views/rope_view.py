"""Rotary positions as a view: a pair's dial, all wavelengths, and q·k against distance."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..errors import BadArgument
from ..ops.reference.rope import rope as rotate
from .controls import select, slider
from .frame import View, details, page
from .text import number, safe

MODES = {"normal": "neighbours (2i, 2i+1)", "neox": "halves (i, i + d/2)"}
KEYS = (
    "Left and right move the position, Page Up and Page Down by 16, Home to 0, End to the last "
    "position of the training; up and down choose the pair."
)
LONGEST = 131_072  # positions
ACROSS = 16  # elements side by side, so that a pair is in sight at once


@dataclass(frozen=True)
class RopeState:
    """What the view shows: a position, a pair, and which elements form a pair."""

    position: int = 1
    pair: int = 0
    layout: str = "normal"


def frequencies(config, factors=None):
    """Turns a position of each pair, in radians: float64 (head_dim / 2,)."""
    i = np.arange(config.rope.n_rot // 2)  # (n_rot / 2,)
    theta = config.rope.freq_base ** (-2.0 * i / config.rope.n_rot)  # (n_rot / 2,)
    return theta if factors is None else theta / factors


def wavelengths(config, factors=None):
    """Positions that each pair takes for one full turn: float64 (head_dim / 2,)."""
    return 2 * np.pi / frequencies(config, factors)


def members(pair, layout, n_rot):
    """The two elements of a pair."""
    return (2 * pair, 2 * pair + 1) if layout == "normal" else (pair, pair + n_rot // 2)


def render(config, state, factors=None, live=True):
    """The view as HTML.

    Parameters
    ----------
    config : Config
    state : RopeState
    factors : ndarray, shape (n_rot / 2,), optional
        Frequency factors of the file.
    live : bool
    """
    n_pairs = config.rope.n_rot // 2
    if not 0 <= state.pair < n_pairs or not 0 <= state.position <= LONGEST:
        raise BadArgument(f"Pairs run from 0 to {n_pairs - 1}, positions from 0 to {LONGEST}.")
    waves = wavelengths(config, factors)
    angle = state.position * float(frequencies(config, factors)[state.pair])
    parts = {
        "controls": _controls(state, n_pairs),
        "stage": (
            f'<div style="display:flex;gap:24px;flex-wrap:wrap">{_dial(angle, state)}'
            f"{_chart(waves, state, config)}</div>{_layouts(config, state)}"
        ),
        "status": safe(reading(config, state, angle, waves)),
        "table": details("The pairs as a table", _table(config, waves, state, factors)),
    }
    return page("rope", f"Rotary positions of {config.name or 'the model'}", parts, KEYS, live)


def reading(config, state, angle, waves):
    a, b = members(state.pair, state.layout, config.rope.n_rot)
    return (
        f"Pair {state.pair} (elements {a} and {b}) at position {state.position}: turned by "
        f"{number(angle)} radians, {number(angle / (2 * math.pi))} turns. One turn takes "
        f"{number(waves[state.pair])} positions."
    )


def _dial(angle, state):
    x, y = 70 + 60 * math.cos(angle), 75 - 60 * math.sin(angle)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="145" height="150" '
        f'aria-label="Pair {state.pair} turned by {number(angle % (2 * math.pi), 3)} radians">'
        f'<circle class="se-stroke" cx="70" cy="75" r="60"/>'
        f'<path class="se-stroke" d="M70 75h60"/>'
        f'<path class="se-cursor" d="M70 75L{x:.1f} {y:.1f}"/>'
        f'<text x="70" y="147" text-anchor="middle">pair {state.pair}</text></svg>'
    )


def _chart(waves, state, config):
    """One bar a pair: the logarithm of its wavelength; a line at the training context."""
    top = math.log10(max(float(waves.max()), config.n_ctx_train) * 1.2)
    step = max(5, min(18, 420 // len(waves)))
    bars = []
    for i, wave in enumerate(waves):
        tall = 110 * math.log10(max(float(wave), 1.01)) / top
        kind = "se-cursor" if i == state.pair else "se-stroke"
        bars.append(
            f'<rect class="se-fill" x="{i * step}" y="{120 - tall:.1f}" width="{step - 2}" '
            f'height="{tall:.1f}"/><rect class="{kind}" x="{i * step}" y="{120 - tall:.1f}" '
            f'width="{step - 2}" height="{tall:.1f}"/>'
        )
    y = 120 - 110 * math.log10(config.n_ctx_train) / top
    width = len(waves) * step
    label = (
        f"Wavelength of each pair, from {number(waves.min(), 3)} to {number(waves.max(), 3)} "
        f"positions; the model was trained on {config.n_ctx_train}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'width="{width + 130}" height="150">{"".join(bars)}'
        f'<path class="se-stroke" stroke-dasharray="4 3" d="M0 {y:.1f}h{width}"/>'
        f'<text x="{width + 4}" y="{y + 4:.1f}">context {config.n_ctx_train}</text>'
        f'<text x="0" y="140">pair 0 … {len(waves) - 1}: positions for one turn (log)</text></svg>'
    )


def _layouts(config, state):
    """Both ways to form pairs, over the elements of one head, the chosen pair marked."""
    n = config.rope.n_rot
    rows = []
    for layout, words in MODES.items():
        pair = members(state.pair, layout, n)
        cells = [
            f'<td class="se-here"><b>{e}</b></td>' if e in pair else f"<td>{e}</td>"
            for e in range(n)
        ]
        lines = ["".join(cells[i : i + ACROSS]) for i in range(0, n, ACROSS)]
        mark = " ←" if layout == state.layout else ""
        rows.append(
            f'<tr><th scope="row" rowspan="{len(lines)}">{safe(words)}{mark}</th>'
            f"{'</tr><tr>'.join(lines)}</tr>"
        )
    return f'<div style="overflow-x:auto" tabindex="0"><table>{"".join(rows)}</table></div>'


def _table(config, waves, state, factors):
    rows = []
    for i, wave in enumerate(waves):
        a, b = members(i, state.layout, config.rope.n_rot)
        factor = "" if factors is None else f"<td>{number(factors[i])}</td>"
        turns = config.n_ctx_train / wave
        rows.append(
            f"<tr><td>{i}</td><td>{a}, {b}</td><td>{number(wave)}</td><td>{number(turns, 3)}</td>"
            f"{factor}</tr>"
        )
    extra = "" if factors is None else "<th>factor</th>"
    head = (
        "<tr><th>pair</th><th>elements</th><th>positions a turn</th><th>turns in the context</th>"
        f"{extra}</tr>"
    )
    return f"<table>{head}{''.join(rows)}</table>"


def _controls(state, n_pairs):
    return (
        slider("Position", "position", 0, 512, min(state.position, 512))
        + slider("Pair", "pair", 0, n_pairs - 1, state.pair)
        + select("Pairs are", "layout", MODES.items(), state.layout)
    )


def scores_by_distance(config, numerics, q, k, starts, distances, factors=None):
    """q·k for a query `distance` positions after its key, from several starting points.

    Parameters
    ----------
    config : Config
    numerics : Numerics
    q, k : ndarray of float32, shape (head_dim,)
    starts, distances : sequence of int

    Returns
    -------
    ndarray of float64, shape (starts, distances)
        Equal rows mean that only the distance matters.
    """
    found = np.zeros((len(starts), len(distances)))  # (starts, distances)
    for i, start in enumerate(starts):
        turned_k = rotate(k[None, None], [start], config.rope, factors, numerics)[0, 0]
        for j, distance in enumerate(distances):
            at = [start + distance]
            turned_q = rotate(q[None, None], at, config.rope, factors, numerics)[0, 0]
            found[i, j] = turned_q.astype(np.float64) @ turned_k
    return found


class RopeView(View):
    """A model's rotations: turn a pair, move the position, compare the two layouts.

    Parameters
    ----------
    config : Config
    factors : ndarray, shape (n_rot / 2,), optional
    position, pair : int
    """

    kind = "rope"

    def __init__(self, config, factors=None, position=1, pair=0):
        self.config, self.factors = config, factors
        super().__init__(RopeState(position, pair, config.rope.layout))

    def _render(self, state, live):
        return render(self.config, state, self.factors, live)

    def _move(self, key):
        s, last = self.state, self.config.rope.n_rot // 2 - 1
        moves = {
            "ArrowLeft": {"position": max(s.position - 1, 0)},
            "ArrowRight": {"position": min(s.position + 1, LONGEST)},
            "PageUp": {"position": max(s.position - 16, 0)},
            "PageDown": {"position": min(s.position + 16, LONGEST)},
            "Home": {"position": 0},
            "End": {"position": min(self.config.n_ctx_train - 1, LONGEST)},
            "ArrowUp": {"pair": max(s.pair - 1, 0)},
            "ArrowDown": {"pair": min(s.pair + 1, last)},
        }
        return replace(s, **moves.get(key, {}))

    def _choose(self, name, value):
        if name in ("position", "pair"):
            return replace(self.state, **{name: int(value)})
        if name == "layout" and value in MODES:
            return replace(self.state, layout=value)
        raise BadArgument(f"The view has no control {name!r} with the value {value!r}.")

    def values(self):
        s = self.state
        return {"position": str(min(s.position, 512)), "pair": str(s.pair), "layout": s.layout}

    def __repr__(self):
        s = self.state
        return f"RopeView(position {s.position}, pair {s.pair}, {s.layout})"
