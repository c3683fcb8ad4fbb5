"""The attention heatmap as HTML: which token looks at which, in one head of one layer."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import BadArgument
from .controls import select, slider
from .frame import View, details, page
from .heat_picture import Scale, grid, legend
from .text import number, safe, visible

WINDOW = 64  # tokens shown at once along each side
TOP = ("largest", "second", "third")
STAGES = ("probabilities", "scores")
KEYS = (
    "Arrow keys move the cell, Home and End go along the row, Page Up and Page Down change the "
    "layer, Shift with left or right changes the head."
)


@dataclass(frozen=True)
class HeatState:
    """What the heatmap shows: a layer, a head, a stage, and the chosen cell."""

    layer: int = 0
    head: int = 0
    stage: str = "probabilities"
    row: int = 0
    column: int = 0


def check(trace, state):
    """Raise BadArgument unless `state` exists in `trace`; return it."""
    config, n = trace.config, len(trace.ids)
    limits = {"layer": config.n_layer, "head": config.n_head, "row": n, "column": n}
    for name, limit in limits.items():
        value = getattr(state, name)
        if not 0 <= value < limit:
            raise BadArgument(
                f"{name} {value} does not exist; give a number from 0 to {limit - 1}."
            )
    if state.stage not in STAGES:
        raise BadArgument(f"The stage is one of {', '.join(STAGES)}, not {state.stage!r}.")
    return state


def move(trace, state, key):
    """The state after a key."""
    config, last = trace.config, len(trace.ids) - 1
    moves = {
        "ArrowLeft": {"column": max(state.column - 1, 0)},
        "ArrowRight": {"column": min(state.column + 1, last)},
        "ArrowUp": {"row": max(state.row - 1, 0)},
        "ArrowDown": {"row": min(state.row + 1, last)},
        "Home": {"column": 0},
        "End": {"column": state.row},  # the last key that this query may see: itself
        "PageUp": {"layer": max(state.layer - 1, 0)},
        "PageDown": {"layer": min(state.layer + 1, config.n_layer - 1)},
        "Shift+ArrowLeft": {"head": max(state.head - 1, 0)},
        "Shift+ArrowRight": {"head": min(state.head + 1, config.n_head - 1)},
    }
    return replace(state, **moves.get(key, {}))


def window(position, n):
    """First and last+1 of the tokens shown, a page of `WINDOW` that holds `position`."""
    start = min(position // WINDOW * WINDOW, max(n - WINDOW, 0))
    return start, min(start + WINDOW, n)


def render(trace, state, live=True):
    """One head's attention as HTML.

    Parameters
    ----------
    trace : Trace
    state : HeatState
    live : bool
        Whether keys and controls work; False for a reader without a kernel.

    Returns
    -------
    str
        Controls, picture, legend, the chosen cell in words, and a table of the same numbers.
    """
    check(trace, state)
    n = len(trace.ids)
    weights = np.asarray(trace.attention(state.layer, state.stage)[state.head])  # (T, T)
    rows, columns = window(state.row, n), window(state.column, n)
    scale = Scale(weights[slice(*rows), slice(*columns)], state.stage)
    label = (
        f"Attention {state.stage} of layer {state.layer}, head {state.head}: "
        f"rows are queries, columns are keys"
    )
    picture = [grid(trace.tokens, (state.row, state.column), weights, rows, columns, scale, label)]
    if n > WINDOW:
        picture.append(
            f'<p class="se-soft">Queries {rows[0]}–{rows[1] - 1} and keys {columns[0]}–'
            f"{columns[1] - 1} of {n} tokens; the arrow keys reach the others.</p>"
        )
    parts = {
        "controls": controls(trace, state),
        "heads": _heads(trace.config, state, live),
        "stage": "".join(picture),
        "status": safe(reading(trace, state, weights)),
        "legend": legend(scale) + f'<p class="se-soft">{_sums(weights, state.stage)}</p>',
        "table": details("The picture as a table", _table(trace, weights, rows, columns)),
    }
    return page("heatmap", label, parts, KEYS, live)


def reading(trace, state, weights):
    """The chosen cell in words: ``it → cat 0.41 (tokens 5 and 2; layer 1, head 0)``."""
    query, key = (visible(trace.tokens[i]) for i in (state.row, state.column))
    later = state.column > state.row
    value = (
        "masked: no token sees a later one" if later else f"{weights[state.row, state.column]:.2f}"
    )
    place = f"tokens {state.row} and {state.column}; layer {state.layer}, head {state.head}"
    return f"{query} → {key} {value} ({place})"


def controls(trace, state):
    """The layer's slider and the choice of stage."""
    last = trace.config.n_layer - 1
    stages = [(stage, stage) for stage in STAGES]
    return slider("Layer", "layer", 0, last, state.layer) + select(
        "Show", "stage", stages, state.stage
    )


def _heads(config, state, live):
    """The heads, bracketed by the key/value head that they share."""
    groups = []
    for kv in range(config.n_head_kv):
        heads = range(kv * config.n_group, (kv + 1) * config.n_group)
        if live:
            chips = [
                f'<button type="button" data-set="head" data-value="{h}" '
                f'aria-pressed="{str(h == state.head).lower()}" aria-label="Head {h}">{h}</button>'
                for h in heads
            ]
        else:
            chips = [f'<b class="se-here">{h}</b>' if h == state.head else str(h) for h in heads]
        groups.append(
            f'<span class="se-group" role="group" aria-label="Heads of key/value head {kv}">'
            f'<span class="se-soft">KV {kv}:</span> {" ".join(chips)}</span>'
        )
    shown = f"Layer {state.layer}, head {state.head}, {state.stage}."
    return f'<div class="se-controls"><b>{shown}</b> Heads {" ".join(groups)}</div>'


def _sums(weights, stage):
    """What the rows of the picture add up to."""
    if stage == "scores":
        return "Scores are q·k/√head_dim, before the soft-max: they have no fixed sum."
    sums = weights.sum(axis=1, dtype=np.float64)  # (T,)
    return f"Each row sums to 1: here from {sums.min():.4f} to {sums.max():.4f}."


def _table(trace, weights, rows, columns):
    """The numbers behind the picture: all of them, or each query's three largest."""
    names = [f"{safe(visible(token))} ({i})" for i, token in enumerate(trace.tokens)]
    full = columns[1] - columns[0] <= 16
    heads = [names[j] for j in range(*columns)] if full else TOP
    head = "".join(f'<th class="se-tok">{h}</th>' for h in heads)
    body = []
    for i in range(*rows):
        row = _all_cells(weights[i], columns) if full else _top_cells(weights[i, : i + 1], names)
        body.append(f'<tr><th scope="row" class="se-tok">{names[i]}</th>{row}</tr>')
    return f"<table><tr><th>query \\ key</th>{head}</tr>{''.join(body)}</table>"


def _all_cells(row, columns):
    return "".join(
        f"<td>{number(v, 3) if np.isfinite(v) else 'masked'}</td>" for v in row[slice(*columns)]
    )


def _top_cells(seen, names):
    order = np.argsort(-seen, kind="stable")[:3].tolist()
    cells = [f'<td class="se-text se-tok">{names[j]}: {number(seen[j], 3)}</td>' for j in order]
    return "".join(cells) + "<td></td>" * (3 - len(cells))


class AttentionHeatmap(View):
    """Which token looks at which: one head's attention, to be walked through with the keys.

    Parameters
    ----------
    trace : Trace
    layer, head : int
    stage : {"probabilities", "scores"}
        After or before the soft-max.
    """

    kind = "heatmap"

    def __init__(self, trace, layer=0, head=0, stage="probabilities"):
        self.trace = trace
        last = len(trace.ids) - 1
        super().__init__(HeatState(layer, head, stage, last, 0))

    def _render(self, state, live):
        return render(self.trace, state, live)

    def _move(self, key):
        return move(self.trace, self.state, key)

    def _choose(self, name, value):
        if name == "cell":
            row, column = (int(v) for v in str(value).split(","))
            return replace(self.state, row=row, column=column)
        if name == "stage":
            return replace(self.state, stage=value)
        if name in ("layer", "head"):
            return replace(self.state, **{name: int(value)})
        raise BadArgument(f"The heatmap has no control {name!r}.")

    def values(self):
        return {"layer": str(self.state.layer), "stage": self.state.stage}

    def __repr__(self):
        s = self.state
        tokens = len(self.trace.ids)
        return f"AttentionHeatmap({tokens} tokens, layer {s.layer}, head {s.head}, {s.stage})"
