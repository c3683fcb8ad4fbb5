"""The parts of the token stepper: the list of steps, the step itself, the cache beside it."""

from ..model import steps
from ..model.spec import symbols
from .cache_picture import cache_html, written
from .controls import select
from .formula import mathml
from .frame import details
from .text import safe, visible
from .value_table import value_html

HEAD_STEPS = ("q_rope", "k_rope", "q_temperature", "attention", "scores", "probabilities")


def nearest_layer(trace, index):
    """The layer of a step; for a step before or after the layers, the first or the last one."""
    layer = trace.names[index][1]
    if layer is None:
        return 0 if index == 0 else trace.config.n_layer - 1
    return layer


def step_list(trace, state, live):
    """The steps of this layer with what comes before and after the layers."""
    shown = nearest_layer(trace, state.index)
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


def step_html(trace, state, spec, layer):
    """The step in the middle: formula, shapes, values, what it is for and where it is computed."""
    config, p = trace.config, state.position
    value = trace.value(spec.name, layer, p)
    inputs = "".join(
        f'<tr><th scope="row" class="se-tok">{safe(titled(name, layer))}</th>'
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
        f"<h4>{safe(titled(spec.name, layer))}</h4>"
        f'<div class="se-formula" tabindex="0">{mathml(spec.formula)}</div>'
        f"<p>{safe(spec.what)}</p><p>{safe(spec.why)}</p>"
        f"<table><tr><th>what</th><th>shape</th><th>numbers</th></tr>{inputs}{output}</table>"
        f"{value_html(value, 'head' if per_head else 'row')}"
        + details("Where it is computed", f"<table>{places}</table>")
    )


def titled(name, layer):
    """A step's or tensor's name with its layer."""
    if "{L}" in name:
        return name.replace("{L}", str(layer))
    return name if layer is None or "." in name else f"{name}, layer {layer}"


def cache_column(trace, state):
    """The cache of the layer that is looked at; of the nearest one outside the layers."""
    shown = nearest_layer(trace, state.index)
    done = written(trace.names, state.index, shown)
    itemsize = 2 if trace.numerics.cache == "float16" else 4
    return cache_html(trace.tokens, state.position, shown, done, trace.config, itemsize)


def controls(trace, state):
    """Buttons for the four moves, and the choice of a token."""
    tokens = [(i, f"{i} {visible(token)}") for i, token in enumerate(trace.tokens)]
    buttons = "".join(
        f'<button type="button" data-press="{key}">{text}</button>'
        for key, text in (
            ("ArrowLeft", "← step"),
            ("ArrowRight", "step →"),
            ("PageUp", "layer −"),
            ("PageDown", "layer +"),
        )
    )
    return buttons + select("Token", "position", tokens, state.position)
