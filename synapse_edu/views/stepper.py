"""The token stepper: one token's way through the model, a step at a time."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import BadArgument
from ..model import steps
from ..model.sampling import log_probabilities, ranked
from ..model.spec import symbols
from ..model.trace import Trace, pieces
from ..study.lens import logit_lens, norms, stream
from .frame import View, details, page
from .step_parts import cache_column, controls, nearest_layer, step_html, step_list, titled
from .stream_picture import stream_svg, stream_table
from .text import safe, visible

KEYS = (
    "Left and right go to the step before and after, Page Up and Page Down to the same step of "
    "the layer before and after, Home and End to the first and the last step, up and down to "
    "another token."
)
STREAM = "<h4>The residual stream"
LATER = '<p class="se-soft" data-later>What each layer would predict is being computed …</p>'


@dataclass(frozen=True)
class StepState:
    """What the stepper shows: a step, counted in order of computation, of one token."""

    index: int = 0
    position: int = 0


def check(trace, state):
    """Raise BadArgument unless `state` exists in `trace`; return it."""
    for name, limit in (("index", len(trace.names)), ("position", len(trace.ids))):
        if not 0 <= getattr(state, name) < limit:
            raise BadArgument(
                f"{name} {getattr(state, name)} does not exist; give 0 to {limit - 1}."
            )
    return state


def move(trace, state, key):
    """The state after a key."""
    last = len(trace.names) - 1
    moves = {
        "ArrowLeft": {"index": max(state.index - 1, 0)},
        "ArrowRight": {"index": min(state.index + 1, last)},
        "ArrowUp": {"position": max(state.position - 1, 0)},
        "ArrowDown": {"position": min(state.position + 1, len(trace.ids) - 1)},
        "Home": {"index": 0},
        "End": {"index": last},
        "PageUp": {"index": other_layer(trace, state.index, -1)},
        "PageDown": {"index": other_layer(trace, state.index, 1)},
    }
    return replace(state, **moves.get(key, {}))


def other_layer(trace, index, by):
    """Index of the same step one layer on or back; from outside the layers, the nearest layer."""
    name, layer = trace.names[index]
    if layer is None:
        inside = [i for i, (_, at) in enumerate(trace.names) if at is not None]
        if not inside:
            return index
        if by > 0:
            return inside[0] if index < inside[0] else index
        return inside[-1] if index > inside[-1] else index
    target = (name, layer + by)
    return trace.names.index(target) if target in trace.names else index


def render(trace, state, guesses=None, live=True):
    """One step of one token as HTML.

    Parameters
    ----------
    trace : Trace
        A full one: every step recorded.
    state : StepState
    guesses : list of list of (str, float), optional
        What each state of the residual stream would predict, from `lens_guesses`.
    live : bool
        Whether keys and controls work.
    """
    check(trace, state)
    name, layer = trace.names[state.index]
    spec = steps.spec(name)
    token = visible(trace.tokens[state.position])
    label = f"Token {state.position} ({token}) step by step"
    states = stream(trace, state.position)
    lengths = norms(states)  # (n_layer + 1,)
    after = name == "layer_output" or (layer is None and state.index > 0)
    here = nearest_layer(trace, state.index) + after
    columns = (
        '<div class="se-columns">'
        '<div class="se-ops" data-scroll tabindex="0" role="group" aria-label="The steps">'
        f"{step_list(trace, state, live)}</div>"
        f"<div>{step_html(trace, state, spec, layer)}</div>"
        f"<div>{cache_column(trace, state)}</div></div>"
    )
    bottom = (
        f"{STREAM}: its length after each layer"
        f"{', and what it would predict there' if guesses else ''}</h4>"
        + stream_svg(lengths, guesses, here)
        + details("The stream as a table", stream_table(lengths, guesses))
    )
    parts = {
        "controls": controls(trace, state),
        "stage": columns,
        "status": safe(reading(trace, state)),
        "stream": bottom,
    }
    return page("stepper", label, parts, KEYS, live)


def reading(trace, state):
    """Where the stepper is, in words: what a screen reader says after a key."""
    name, layer = trace.names[state.index]
    spec = steps.spec(name)
    where = f"layer {layer}, " if layer is not None else ""
    shape = spec.shape(trace.config, state.position)
    token = f"token {state.position} {visible(trace.tokens[state.position])}"
    return (
        f"Step {state.index + 1} of {len(trace.names)}, {token}: {where}{name}. {spec.what} "
        f"Shape {symbols(spec.output)} = {shape}."
    )


def lens_guesses(trace, model, position, n=3):
    """The `n` likeliest next tokens from each state of the stream: the logit lens.

    Returns
    -------
    list of list of (str, float)
        One list for each of the n_layer + 1 states, likeliest first; an empty one for a state
        whose scores hold no largest number, as behind a NaN.
    """
    logits = logit_lens(stream(trace, position), model.weights, model.config, model.numerics)
    guesses = []
    for row in logits:  # (n_vocab,)
        if not np.isfinite(row.max()):
            guesses.append([])
            continue
        log_p = log_probabilities(row)  # (n_vocab,)
        best = ranked(row, n)  # (n,)
        words = (visible(piece) for piece in pieces(model, best.tolist()))
        guesses.append(list(zip(words, np.exp(log_p[best]).tolist(), strict=True)))
    return guesses


class TokenStepper(View):
    """One token's way through the model: operations, formula, values, cache and stream.

    Parameters
    ----------
    model : Llama
    prompt : str, sequence of int, or Trace
    position : int
        The token to follow; the last one by default.
    lens : bool
        Whether to show what each layer would predict.
    """

    kind = "stepper"

    def __init__(self, model, prompt, position=-1, lens=True):
        if isinstance(prompt, str):
            prompt = model.tokenizer.encode(prompt)
        self.model = model
        self.trace = prompt if isinstance(prompt, Trace) else Trace.record(model, prompt)
        self.lens, self._guesses = lens, {}
        n = len(self.trace.ids)
        if not -n <= position < n:
            raise BadArgument(f"There is no token {position}; the prompt has {n}.")
        super().__init__(StepState(0, position % n))

    def _render(self, state, live):
        guesses = self._guesses.get(state.position)
        if self.lens and guesses is None:
            if live and self._guesses:
                # Scoring a stream takes a while on a large vocabulary.  The step is shown at
                # once, and the browser asks for the rest when no key has come for a moment.
                return render(self.trace, state, None, live).replace(STREAM, LATER + STREAM)
            guesses = lens_guesses(self.trace, self.model, state.position)
            self._guesses[state.position] = guesses
        return render(self.trace, state, guesses, live)

    def _later(self):
        position = self.state.position
        if self.lens and position not in self._guesses:
            self._guesses[position] = lens_guesses(self.trace, self.model, position)
        return self.state

    def _move(self, key):
        return move(self.trace, self.state, key)

    def _choose(self, name, value):
        if name not in ("index", "position"):
            raise BadArgument(f"The stepper has no control {name!r}.")
        return replace(self.state, **{name: int(value)})

    def values(self):
        return {"position": str(self.state.position)}

    def __repr__(self):
        name, layer = self.trace.names[self.state.index]
        return f"TokenStepper({len(self.trace.ids)} tokens, at {titled(name, layer)})"
