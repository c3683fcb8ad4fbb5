"""The divergence microscope as a view: two passes side by side, step by step."""

import math
from dataclasses import dataclass, replace

from ..errors import BadArgument
from ..numerics import PRESETS
from ..study.divergence import Nudge, diverge, label
from .controls import select
from .frame import View, details, page
from .text import number, safe

MEASURES = {"max_abs": "largest difference", "relative_rms": "relative RMS", "ulp": "ulp"}
LEVELS = 6  # shades of the heat table, each a factor of 100
SHADES = "·░▒▓█■"  # the same as characters, so that nothing is said by shade alone
KEYS = (
    "Up and down choose a step, Page Up and Page Down the same step of another layer, Home and End "
    "the first and the last, left and right the measure."
)
ONE_ULP = "itself, one value moved by one ulp"


@dataclass(frozen=True)
class MicroscopeState:
    """What the microscope shows: the other side, the measure, the threshold, the chosen step."""

    other: str
    measure: str = "max_abs"
    threshold: float = 0.0
    step: int = 0


def level(value):
    """Shade of a value: 0 for exactly 0, then one more for each factor of 100 above 1e-10."""
    if value == 0:
        return 0
    if not math.isfinite(value):
        return LEVELS - 1
    return min(max(1 + int((math.log10(value) + 9) // 2), 1), LEVELS - 1)


def render(result, state, others, live=True):
    """A comparison as HTML.

    Parameters
    ----------
    result : study.divergence.Divergence
    state : MicroscopeState
    others : list of str
        What side a can be compared with.
    live : bool
    """
    if not 0 <= state.step < len(result.gaps):
        raise BadArgument(f"There is no step {state.step}; there are {len(result.gaps)}.")
    title = f"{result.a} against {result.b}"
    parts = {
        "controls": _controls(state, others),
        "heading": f"<h4>{safe(title)}</h4><p><b>{safe(result.verdict())}</b></p>",
        "stage": _grid(result, state, live),
        "status": safe(reading(result, state)),
        "legend": _legend(),
        "table": details("All steps as a table", _table(result, state)),
    }
    return page("microscope", f"Divergence: {title}", parts, KEYS, live)


def reading(result, state):
    """The chosen step in words, and where the first difference over the threshold is."""
    g = result.gaps[state.step]
    first = result.first_over(state.threshold, state.measure)
    start = (
        f"First step over {number(state.threshold)}: {label(first)}."
        if first
        else f"No step is over {number(state.threshold)}."
    )
    return (
        f"{label(g)} ({g.llama_cpp_name or 'no name in llama.cpp'}): largest difference "
        f"{number(g.max_abs)}, relative RMS {number(g.relative_rms)}, {g.ulp} ulp; "
        f"{g.n_different} of {g.n_values} values have other bits. {start} "
        f"Shaded by {MEASURES[state.measure]}."
    )


def _columns(result):
    """Steps by layer: (heading, list of (index, name)) for each column of the picture."""
    columns = {}
    for i, g in enumerate(result.gaps):
        columns.setdefault(g.layer if g.layer is not None else ("", i > 0), []).append((i, g.name))
    return [(str(k) if not isinstance(k, tuple) else "", rows) for k, rows in columns.items()]


def _grid(result, state, live):
    """One row a kind of step, one column a layer, shaded by the measure."""
    names = list(dict.fromkeys(g.name for g in result.gaps))
    columns = _columns(result)
    first = result.first_over(state.threshold, state.measure)
    head = "".join(f"<th>{heading}</th>" for heading, _ in columns)
    rows = []
    for name in names:
        cells = []
        for _, column in columns:
            found = [i for i, n in column if n == name]
            cells.append(_cell(result, state, found[0], first, live) if found else "<td></td>")
        rows.append(f'<tr><th scope="row" class="se-tok">{safe(name)}</th>{"".join(cells)}</tr>')
    return f"<table><tr><th>step \\ layer</th>{head}</tr>{''.join(rows)}</table>"


def _cell(result, state, i, first, live):
    g = result.gaps[i]
    value = float(getattr(g, state.measure))
    shade = level(value if state.measure != "ulp" else value * 1e-9)
    here = ' class="se-here"' if i == state.step else ""
    mark = "①" if g is first else ""
    press = f' data-set="step" data-value="{i}"' if live else ""
    what = f"{safe(label(g))}: {number(value)}"
    return f'<td{here}{press} title="{what}">{SHADES[shade]}{mark}</td>'


def _legend():
    edges = ["0", *(f"1e{-9 + 2 * i}" for i in range(LEVELS - 1))]
    words = ", ".join(f"{s} from {e}" for s, e in zip(SHADES, edges, strict=True))
    return f'<p class="se-soft">{words}; ① the first step over the threshold (ulp: times 1e9).</p>'


def _table(result, state):
    first = result.first_over(state.threshold, state.measure)
    rows = "".join(
        f'<tr><th scope="row" class="se-tok">{safe(label(g))}{" ①" if g is first else ""}</th>'
        f"<td>{number(g.max_abs)}</td><td>{number(g.relative_rms)}</td><td>{g.ulp}</td>"
        f"<td>{g.n_different} of {g.n_values}</td></tr>"
        for g in result.gaps
    )
    head = (
        "<tr><th>step</th><th>largest</th><th>relative RMS</th><th>ulp</th><th>other bits</th></tr>"
    )
    return f"<table>{head}{rows}</table>"


def _controls(state, others):
    thresholds = [(f"{t:g}", f"{t:g}") for t in (0, 1e-7, 1e-5, 1e-3, 1e-1)]
    return (
        select("Against", "other", [(o, o) for o in others], state.other)
        + select("Shade by", "measure", MEASURES.items(), state.measure)
        + select("Threshold", "threshold", thresholds, f"{state.threshold:g}")
    )


class Microscope(View):
    """Two passes over the same tokens, compared at the last token.

    Parameters
    ----------
    model : Llama
        Its Numerics are side a.
    prompt : str or sequence of int
    other : str
        A preset of Numerics, or `ONE_ULP`: the same Numerics with the first number of the
        embedding moved by one unit in the last place.
    """

    kind = "microscope"

    def __init__(self, model, prompt, other="textbook"):
        if isinstance(prompt, str):
            prompt = model.tokenizer.encode(prompt)
        self.model, self.ids, self._made = model, model.check_ids(prompt), {}
        self.others = [*(name for name in PRESETS if name != model.numerics.name), ONE_ULP]
        super().__init__(self._valid(MicroscopeState(other)))

    def _valid(self, state):
        if state.other not in self.others:
            raise BadArgument(f"{state.other!r}: choose one of {', '.join(self.others)}.")
        return state

    def result(self, other):
        """The Divergence from `other`, computed once."""
        if other not in self._made:
            if other == ONE_ULP:
                nudge = Nudge("embedding", None, len(self.ids) - 1)
                self._made[other] = diverge(self.model, self.ids, nudge=nudge)
            else:
                self._made[other] = diverge(self.model, self.ids, None, other)
        return self._made[other]

    def _render(self, state, live):
        return render(self.result(state.other), state, self.others, live)

    def _move(self, key):
        s, gaps = self.state, self.result(self.state.other).gaps
        measures, last = list(MEASURES), len(gaps) - 1
        if key in ("ArrowLeft", "ArrowRight"):
            at = measures.index(s.measure) + (1 if key == "ArrowRight" else -1)
            return replace(s, measure=measures[at % len(measures)])
        steps = {"ArrowUp": max(s.step - 1, 0), "ArrowDown": min(s.step + 1, last)}
        steps |= {"Home": 0, "End": last}
        if key in ("PageUp", "PageDown") and gaps[s.step].layer is not None:
            layer = gaps[s.step].layer + (1 if key == "PageDown" else -1)
            same = [
                i for i, g in enumerate(gaps) if (g.name, g.layer) == (gaps[s.step].name, layer)
            ]
            return replace(s, step=same[0] if same else s.step)
        return replace(s, step=steps.get(key, s.step))

    def _choose(self, name, value):
        if name == "other":
            return self._valid(replace(self.state, other=str(value), step=0))
        if name == "measure" and value in MEASURES:
            return replace(self.state, measure=value)
        if name == "threshold":
            return replace(self.state, threshold=float(value))
        if name == "step":
            return replace(self.state, step=int(value))
        raise BadArgument(f"The microscope has no control {name!r} with the value {value!r}.")

    def values(self):
        s = self.state
        return {"other": s.other, "measure": s.measure, "threshold": f"{s.threshold:g}"}

    def __repr__(self):
        here = self.model.numerics.name
        return f"Microscope({len(self.ids)} tokens, {here} against {self.state.other})"
