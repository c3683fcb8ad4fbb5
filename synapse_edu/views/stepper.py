"""The token stepper: one token's way through the model, a step at a time."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import BadArgument
from ..model import steps
from ..model.sampling import log_probabilities, ranked
from ..model.spec import symbols
from ..model.trace import Trace
from ..study.lens import logit_lens, norms, stream
from .cache_picture import cache_html, written
from .formula import mathml
from .frame import View, details, page
from .stream_picture import stream_svg, stream_table
from .text import safe, visible
from .value_table import value_html

KEYS = (
    "Left and right go to the step before and after, Page Up and Page Down to the same step of "
    "the layer before and after, Home and End to the first and the last step, up and down to "
    "another token."
)
HEAD_STEPS = ("q_rope", "k_rope", "q_temperature", "attention", "scores", "probabilities")


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
    here = len(states) - 1 if layer is None and state.index else 0 if layer is None else layer
    here += name == "layer_output"
    columns = (
        f'<div class="se-columns"><div class="se-ops" data-scroll>{_list(trace, state, live)}</div>'
        f"<div>{_middle(trace, state, spec, layer)}</div>"
        f"<div>{_cache(trace, state, layer)}</div></div>"
    )
    bottom = (
        "<h4>The residual stream: its length after each layer"
        f"{', and what it would predict there' if guesses else ''}</h4>"
        + stream_svg(norms(states), guesses, here)
        + details("The stream as a table", stream_table(norms(states), guesses))
    )
    parts = {
        "controls": _controls(trace, state),
        "stage": columns,
        "status": safe(reading(trace, state)),
        "stream": bottom,
    }
    return page("stepper", label, parts, KEYS, live)


def reading(trace, state):
    """Where the stepper is, in words."""
    name, layer = trace.names[state.index]
    spec = steps.spec(name)
    where = f"layer {layer}, " if layer is not None else ""
    shape = spec.shape(trace.config, state.position)
    return (
        f"Step {state.index + 1} of {len(trace.names)}: {where}{name}. {spec.what} "
        f"Shape {symbols(spec.output)} = {shape}."
    )


def _list(trace, state, live):
    """The steps of this layer with what comes before and after the layers."""
    layer = trace.names[state.index][1]
    shown = layer if layer is not None else (0 if state.index == 0 else trace.config.n_layer - 1)
    rows, group = [], None
    for i, (name, at) in enumerate(trace.names):
        if at not in (None, shown):
            continue
        spec = steps.spec(name)
        title = spec.group if at is None else f"layer {at}: {spec.group}"
        if title != group:
            rows.append(f'<li class="se-head">{safe(title)}</li>')
            group = title
        current = ' aria-current="step"' if i == state.index else ""
        press = f' data-set="index" data-value="{i}"' if live else ""
        text = f"<b>{safe(name)}</b>" if i == state.index else safe(name)
        rows.append(f"<li{current}{press}>{text}</li>")
    return f"<ol>{''.join(rows)}</ol>"


def _middle(trace, state, spec, layer):
    config, p = trace.config, state.position
    value = trace.value(spec.name, layer, p)
    inputs = "".join(
        f'<tr><th scope="row" class="se-tok">{safe(_at(name, layer))}</th>'
        f'<td class="se-text">{safe(symbols(shape))}</td><td class="se-text">{numbers}</td></tr>'
        for (name, shape), numbers in zip(
            spec.inputs, spec.input_shapes(config, p).values(), strict=True
        )
    )
    output = (
        f'<tr><th scope="row" class="se-tok">→ {safe(spec.name)}</th>'
        f'<td class="se-text">{safe(symbols(spec.output))}</td>'
        f'<td class="se-text">{spec.shape(config, p)}</td></tr>'
    )
    cpp_name = spec.llama_cpp_name(layer, config.architecture)
    where = (
        ("this package", spec.package),
        ("llama.cpp", spec.llama_cpp + (f", tensor {cpp_name}" if cpp_name else "")),
        ("the official code", spec.official),
        ("synapse", spec.synapse),
    )
    places = "".join(
        f'<tr><th scope="row">{who}</th><td class="se-text">{safe(what)}</td></tr>'
        for who, what in where
    )
    per_head = value.ndim > 1 or spec.name in HEAD_STEPS
    return (
        f"<h4>{safe(_at(spec.name, layer))}</h4>"
        f'<div class="se-formula">{mathml(spec.formula)}</div>'
        f"<p>{safe(spec.what)}</p><p>{safe(spec.why)}</p>"
        f"<table><tr><th>what</th><th>shape</th><th>numbers</th></tr>{inputs}{output}</table>"
        f"{value_html(value, 'head' if per_head else 'row')}"
        + details("Where it is computed", f"<table>{places}</table>")
    )


def _at(name, layer):
    if "{L}" in name:
        return name.replace("{L}", str(layer))
    return name if layer is None or "." in name else f"{name}, layer {layer}"


def _cache(trace, state, layer):
    shown = layer if layer is not None else (0 if state.index == 0 else trace.config.n_layer - 1)
    done = written(trace.names, state.index, shown)
    itemsize = 2 if trace.numerics.cache == "float16" else 4
    return cache_html(trace.tokens, state.position, shown, done, trace.config, itemsize)


def _controls(trace, state):
    options = "".join(
        f'<option value="{i}"{" selected" if i == state.position else ""}>'
        f"{i} {safe(visible(token))}</option>"
        for i, token in enumerate(trace.tokens)
    )
    buttons = "".join(
        f'<button type="button" data-press="{key}">{text}</button>'
        for key, text in (
            ("ArrowLeft", "← step"),
            ("ArrowRight", "step →"),
            ("PageUp", "layer −"),
            ("PageDown", "layer +"),
        )
    )
    return f'{buttons}<label>Token <select data-set="position">{options}</select></label>'


def lens_guesses(trace, model, position, n=3):
    """The `n` likeliest next tokens from each state of the stream: the logit lens.

    Returns
    -------
    list of list of (str, float)
        One list for each of the n_layer + 1 states, likeliest first.
    """
    logits = logit_lens(stream(trace, position), model.weights, model.config, model.numerics)
    piece = model.tokenizer.piece
    guesses = []
    for row in logits:  # (n_vocab,)
        log_p = log_probabilities(row)  # (n_vocab,)
        best = ranked(row, n).tolist()
        guesses.append([(visible(piece(i)), float(np.exp(log_p[i]))) for i in best])
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
        Whether to show what each layer would predict; needs a vocabulary.
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
        if self.lens and state.position not in self._guesses:
            self._guesses[state.position] = lens_guesses(self.trace, self.model, state.position)
        return render(self.trace, state, self._guesses.get(state.position), live)

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
        return f"TokenStepper({len(self.trace.ids)} tokens, at {_at(name, layer)})"
