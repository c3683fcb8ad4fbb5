"""The token stepper: every step shown is the recorded one, in order, with its own words."""

import re

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.model import steps
from synapse_edu.study.lens import logit_lens, norms, stream
from synapse_edu.views import TokenStepper, stepper
from synapse_edu.views.cache_picture import written
from synapse_edu.views.formula import mathml
from synapse_edu.views.stepper import StepState
from synapse_edu.views.text import number, safe
from synapse_edu.views.value_table import summary, value_html


@pytest.fixture(scope="module", params=["llama_q8_0", "qwen2_f32_untied"])
def model(request, golden):
    return se.load(golden / f"{request.param}.gguf")


@pytest.fixture(scope="module")
def trace(model):
    rng = np.random.default_rng(3)
    return se.Trace.record(model, rng.integers(0, model.config.n_vocab, 5).tolist())


def test_right_arrow_visits_every_step_once_and_in_order(model, trace):
    view = TokenStepper(model, trace, lens=False)
    seen = []
    for _ in trace.names:
        name, layer = trace.names[view.state.index]
        value = trace.value(name, layer)
        assert safe(steps.spec(name).what) in view.html
        first = number(np.atleast_2d(value).reshape(-1)[0])
        assert f"<td>{first}</td>" in view.html
        assert str(steps.spec(name).shape(trace.config, 4)) in view.html
        seen.append((name, layer))
        view.press("ArrowRight")
    assert seen == trace.names and view.state.index == len(seen) - 1


def test_page_keys_keep_the_step_and_change_the_layer(trace):
    at = trace.names.index(("scores", 0))
    down = stepper.move(trace, StepState(at, 2), "PageDown")
    assert trace.names[down.index] == ("scores", 1) and down.position == 2
    assert stepper.move(trace, down, "PageUp").index == at
    last = trace.names.index(("scores", trace.config.n_layer - 1))
    assert stepper.move(trace, StepState(last), "PageDown").index == last


def test_page_keys_enter_the_layers_from_outside(trace):
    end = len(trace.names) - 1
    assert trace.names[stepper.move(trace, StepState(0), "PageDown").index][1] == 0
    assert trace.names[stepper.move(trace, StepState(end), "PageUp").index][1] is not None
    assert stepper.move(trace, StepState(0), "PageUp").index == 0
    assert stepper.move(trace, StepState(end), "PageDown").index == end


def test_up_and_down_change_the_token(model, trace):
    view = TokenStepper(model, trace, position=2)
    view.press("ArrowUp")
    view.later()
    assert view.state.position == 1
    value = trace.value("embedding", None, 1)
    assert f"<td>{number(value[0])}</td>" in view.html


def test_the_cache_is_written_when_the_key_has_been_turned(trace):
    for layer in range(trace.config.n_layer):
        turned = trace.names.index(("k_rope", layer))
        assert not written(trace.names, turned - 1, layer)
        assert written(trace.names, turned, layer)


def test_the_cache_counts_bytes_as_the_engine_does(model, trace):
    cache = model.new_cache(8)
    model.prefill(trace.ids, cache)
    view = TokenStepper(model, trace, lens=False)
    assert f"<b>{cache.nbytes_used:,} bytes</b> for 5" in view.html


def test_the_lens_ends_in_the_models_own_logits(model, trace):
    for position in (0, 4):
        states = stream(trace, position)
        logits = logit_lens(states, model.weights, model.config, model.numerics)
        assert logits.shape == (model.config.n_layer + 1, model.config.n_vocab)
        last = steps.plan(model.config)[-1][0].name
        name = last if (last, None) in trace.names else "logits"
        assert logits[-1].tobytes() == trace.value(name, None, position).tobytes()


def test_lengths_of_the_stream(trace):
    states = stream(trace)
    assert np.allclose(norms(states), np.linalg.norm(states.astype(np.float64), axis=1))
    assert len(states) == trace.config.n_layer + 1


def test_another_token_is_shown_before_its_stream_is_scored(model, trace):
    view = TokenStepper(model, trace)
    assert "data-later" not in view.html and "would predict there" in view.html
    view.press("ArrowUp")
    assert "data-later" in view.html
    view._receive(None, {"later": True})
    assert "data-later" not in view.html and "would predict there" in view.html
    other = TokenStepper(model, trace)
    other.press("ArrowUp")
    assert "data-later" not in other.static()


def test_it_works_without_a_vocabulary(model, trace):
    bare = se.Llama(model.config, model.weights)
    view = TokenStepper(bare, trace)
    assert re.search(r"#\d+ 0\.\d+", view.html)


def test_a_prompt_can_be_text():
    model = se.load("built-in")
    view = TokenStepper(model, "<b>&")
    assert "<b>&" not in view.html
    assert view.trace.ids == model.tokenizer.encode("<b>&")
    assert repr(view) == f"TokenStepper({len(view.trace.ids)} tokens, at embedding)"


@pytest.mark.parametrize("position", [5, -6])
def test_a_token_that_is_not_there_is_refused(model, trace, position):
    with pytest.raises(BadArgument, match="5"):
        TokenStepper(model, trace, position)


def test_every_formula_becomes_mathml():
    for spec in steps.STEPS:
        assert mathml(spec.formula).startswith("<math"), spec.name


def test_a_formula_that_cannot_be_converted_stays_readable():
    assert mathml("<_") == "<code>&lt;_</code>"


def test_a_model_that_gives_nan_can_be_walked(golden):
    model = se.load(golden / "llama_q8_0.gguf")
    model.weights.layers[1].ffn_norm[:] = np.nan
    view = TokenStepper(model, se.Trace.record(model, [1, 2, 3]))
    words = [text for state in view._guesses[2] for text, _ in state[:1]]
    assert len(words) == 2  # before the bad step the lens reads on: entering, after layer 0
    assert ">NaN</text>" in view.html and "Step 1 of" in view.html
    view.press("End")
    assert view.error is None and "No finite number." in view.html


def test_values_that_overflowed_are_shown():
    value = np.array([np.inf, -np.inf, np.nan, 2.0], np.float32)
    html = value_html(value, "row")
    for text in ("∞", "-∞", "NaN"):
        assert f"<td>{text}</td>" in html
    assert summary(np.array([np.nan])) == "No finite number."
