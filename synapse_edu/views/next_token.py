"""The next token as bars: the model's probabilities, and what a sampler makes of them."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import BadArgument
from ..model.sampling import Sampler, log_probabilities, ranked
from .controls import slider
from .frame import View, details, page
from .text import number, safe, short, visible

KEYS = "Up and down choose a token, Home and End the first and the last of those shown."
ROW, LEFT, WIDE = 24, 130, 380  # height of a row, width of the names, width of probability 1


@dataclass(frozen=True)
class BarsState:
    """What the bars show: a sampler's settings, how many tokens, and which one is chosen."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    n: int = 10
    chosen: int = 0


@dataclass(frozen=True)
class Bar:
    """One token: its id and text, the model's probability, and its chance of being drawn."""

    id: int
    text: str
    model: float
    drawn: float


def bars(logits, piece, state):
    """The `state.n` likeliest tokens, under the model and under the sampler.

    Parameters
    ----------
    logits : ndarray of float32, shape (n_vocab,)
    piece : function of int → bytes
        Text of a token.
    state : BarsState

    Returns
    -------
    list of Bar
        By falling logit.
    """
    sampler = Sampler(state.temperature, state.top_k, state.top_p, seed=0)
    model = np.exp(log_probabilities(logits))  # (n_vocab,)
    ids, chances = sampler.distribution(logits)  # (m,), (m,)
    drawn = dict(zip(ids.tolist(), chances.tolist(), strict=True))
    return [
        Bar(i, visible(piece(i)), float(model[i]), drawn.get(i, 0.0))
        for i in ranked(np.asarray(logits), state.n).tolist()
    ]


def render(logits, piece, state, live=True):
    """The bars as HTML: solid for the chance of being drawn, an outline for the model's own.

    Parameters
    ----------
    logits, piece, state
        As for `bars`.
    live : bool
        Whether keys and controls work.
    """
    shown = bars(logits, piece, state)
    if not 0 <= state.chosen < len(shown):
        raise BadArgument(f"There is no bar {state.chosen}; there are {len(shown)}.")
    label = (
        f"The {len(shown)} likeliest next tokens at temperature {number(state.temperature)}, "
        f"top-k {state.top_k or 'off'}, top-p {number(state.top_p)}"
    )
    model, drawn = sum(b.model for b in shown), sum(b.drawn for b in shown)
    rest = (
        f"These {len(shown)} of {len(logits):,} tokens hold {model:.3f} of the model's "
        f"probability and {drawn:.3f} of the chance of being drawn. An outline is the model's own "
        f"probability, a solid bar the chance of being drawn."
    )
    parts = {
        "controls": controls(state),
        "heading": f"<h4>{safe(label)}</h4>",
        "stage": _svg(shown, state, label),
        "status": safe(reading(shown[state.chosen])),
        "rest": f'<p class="se-soft">{safe(rest)}</p>',
        "table": details("The picture as a table", _table(shown)),
    }
    return page("bars", label, parts, KEYS, live)


def reading(bar):
    """One bar in words."""
    chance = f"drawn with {bar.drawn:.3f}" if bar.drawn else "never drawn: the sampler removed it"
    return f"{bar.text} (id {bar.id}): model {bar.model:.3f}, {chance}"


def controls(state):
    """A slider for each setting of the sampler."""
    return (
        slider("Temperature", "temperature", 0, 2, state.temperature, step=0.05)
        + slider("Top-k (0: off)", "top_k", 0, 100, state.top_k)
        + slider("Top-p (1: off)", "top_p", 0.05, 1, state.top_p, step=0.05)
    )


def _svg(shown, state, label):
    # Bars are drawn against the largest of those shown, so that small ones can still be seen.
    largest = max(max(b.model, b.drawn) for b in shown) or 1.0
    body = []
    for i, bar in enumerate(shown):
        y = i * ROW
        strong = ' class="se-strong"' if i == state.chosen else ""
        full, drawn = bar.model / largest * WIDE, bar.drawn / largest * WIDE
        said = f"{bar.drawn:.3f}" if bar.drawn else "removed"
        body.append(
            f'<text{strong} x="-6" y="{y + 15}" text-anchor="end">'
            f"{safe(short(bar.text, 16))}</text>"
            f'<rect class="se-fill" fill-opacity="0.75" x="0" y="{y + 3}" width="{drawn:.4g}" '
            f'height="16"/>'
            f'<rect class="se-stroke" x="0" y="{y + 1}" width="{full:.4g}" height="20"/>'
            f'<text{strong} x="{max(full, drawn) + 6:.4g}" y="{y + 15}">{said}</text>'
        )
    width, height = LEFT + WIDE + 80, len(shown) * ROW + 4
    box = f'<rect class="se-cursor" x="{-LEFT + 2}" y="{state.chosen * ROW}" '
    body.append(f'{box}width="{width - 4}" height="{ROW - 1}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'width="{width}" height="{height}" viewBox="{-LEFT} -1 {width} {height}">'
        f"{''.join(body)}</svg>"
    )


def _table(shown):
    head = "<tr><th>token</th><th>id</th><th>model</th><th>chance of being drawn</th></tr>"
    rows = "".join(
        f'<tr><th scope="row" class="se-tok">{safe(b.text)}</th><td>{b.id}</td>'
        f"<td>{b.model:.4f}</td><td>{b.drawn:.4f}</td></tr>"
        for b in shown
    )
    return f"<table>{head}{rows}</table>"


class NextTokenBars(View):
    """The likeliest next tokens under temperature, top-k and top-p.

    Parameters
    ----------
    logits : ndarray of float32, shape (n_vocab,)
    tokenizer : Tokenizer
        Gives each token's text.
    temperature, top_k, top_p
        As for `Sampler`.
    n : int
        How many tokens to show.
    """

    kind = "bars"

    def __init__(self, logits, tokenizer, temperature=1.0, top_k=0, top_p=1.0, n=10):
        self.logits = np.array(logits, np.float32)  # (n_vocab,): a copy, so that it cannot change
        self._piece = lambda i: tokenizer.piece(i, special=True)
        n = max(1, min(int(n), len(self.logits)))
        super().__init__(BarsState(temperature, top_k, top_p, n))

    def _render(self, state, live):
        return render(self.logits, self._piece, state, live)

    def _move(self, key):
        last = self.state.n - 1
        moves = {
            "ArrowUp": max(self.state.chosen - 1, 0),
            "ArrowDown": min(self.state.chosen + 1, last),
            "Home": 0,
            "End": last,
        }
        return replace(self.state, chosen=moves.get(key, self.state.chosen))

    def _choose(self, name, value):
        kinds = {"temperature": float, "top_p": float, "top_k": int}
        if name not in kinds:
            raise BadArgument(f"The bars have no control {name!r}.")
        return replace(self.state, **{name: kinds[name](value)})

    def values(self):
        s = self.state
        return {name: f"{getattr(s, name):g}" for name in ("temperature", "top_k", "top_p")}

    def __repr__(self):
        s = self.state
        return (
            f"NextTokenBars({s.n} of {len(self.logits)} tokens, temperature={s.temperature:g}, "
            f"top_k={s.top_k}, top_p={s.top_p:g})"
        )
