"""The divergence microscope: what it must find, and what it must not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.study.divergence import Nudge, diverge, gap, switches, ulp_distance
from synapse_edu.study.floatbits import bits
from synapse_edu.views.microscope import ONE_ULP, Microscope, level

IDS = [1, 20, 33, 7, 250, 20]
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def model(golden):
    return se.load(golden / "llama_q4_0.gguf", backend="reference")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(FLOATS, st.integers(1, 50))
def test_ulps_count_steps(x, n):
    a, b = np.float32(x), np.float32(x)
    for _ in range(n):
        b = np.nextafter(b, np.float32(np.inf))
    # +0 and -0 share a place, so a walk through zero is one shorter
    assert int(ulp_distance(a, b)) in (n, n - 1)
    assert int(ulp_distance(a, a)) == 0 == int(ulp_distance(np.float32(0), np.float32(-0.0)))


def test_equal_sides_do_not_differ(model):
    found = diverge(model, IDS)
    assert found.n_different == 0 and found.first_over() is None and not found.flips
    assert found.logit_error == 0 and found.rank_of_best == 0
    whole = diverge(model, IDS, chunks=[2, 3])
    assert whole.n_different == 0, "prefill in batches gives the same bits"


def test_a_switch_is_found_where_it_acts(model):
    unrounded = model.numerics.replace(probabilities="float32")
    first = diverge(model, IDS, None, unrounded).first_over()
    assert (first.name, first.layer) == ("attention", 0)
    activations = model.numerics.replace(activations="float32")
    first = diverge(model, IDS, None, activations).first_over()
    assert (first.name, first.layer) == ("q", 0)


def test_a_nudge_acts_where_it_is_put(model):
    position = len(IDS) - 1
    found = diverge(model, IDS, nudge=Nudge("ffn_norm", 1, position, 3, 40))
    first = found.first_over()
    assert (first.layer, first.name, first.ulp, first.index) == (1, "ffn_norm", 40, 3)
    # the activations of a quantized product are rounded to 8 bits: 40 ulp may vanish there
    assert first.n_different == 1
    with pytest.raises(BadArgument, match="outside embedding"):
        diverge(model, IDS, nudge=Nudge("embedding", None, 0, 10**6))


def test_a_nudge_everywhere(model):
    found = diverge(model, IDS, nudge=Nudge("embedding", None, len(IDS) - 1, None, 2))
    first = found.first_over()
    assert (first.name, first.ulp, first.n_different) == ("embedding", 2, first.n_values)
    assert found.b == "llama.cpp, embedding moved"


def test_switches_alone_and_together(model):
    rows = switches(model, IDS, "llama.cpp", "textbook")
    names = [name for name, _ in rows]
    assert "cache alone" in names and names[-1].count("+") >= 4
    together = dict(rows)[names[-1]]
    want = diverge(model, IDS, "llama.cpp", "textbook")
    assert np.array_equal(together.logits_b, want.logits_b)


def test_gap_of_known_arrays():
    a = np.array([1.0, -np.inf, 2.0], np.float32)
    b = np.array([1.0, -np.inf, 2.5], np.float32)
    found = gap("scores", 0, "kq-0", a, b)
    assert (found.max_abs, found.n_different, found.index) == (0.5, 1, 2)
    assert found.relative_rms == pytest.approx(np.sqrt(0.25 / 3) / np.sqrt(5 / 3))


def test_refusals(model):
    with pytest.raises(BadArgument, match="empty"):
        diverge(model, [])
    with pytest.raises(BadArgument, match="chunks hold 9"):
        diverge(model, IDS, chunks=[9])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(FLOATS)
def test_bits_of_a_number(x):
    for format, (e, f) in {"float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}.items():
        sign, exponent, fraction, rounded = bits(x, format)
        assert (len(sign), len(exponent), len(fraction)) == (1, e, f)
        bias = 2 ** (e - 1) - 1
        if int(exponent, 2) == 2**e - 1:
            continue  # too large for the format
        scale = int(fraction, 2) / 2**f + (1 if int(exponent, 2) else 0)
        value = (-1) ** int(sign) * scale * 2.0 ** (max(int(exponent, 2), 1) - bias)
        assert value == rounded


def test_the_view(model):
    view = Microscope(model, IDS)
    assert "llama.cpp against textbook" in view.html and "①" in view.html
    view.press("End")
    assert view.state.step == len(view.result("textbook").gaps) - 1
    view.press("ArrowRight")
    assert view.state.measure == "relative_rms"
    view.choose("other", ONE_ULP)
    assert view.error is None and "moved" in view.html
    view.choose("other", "nothing")
    assert isinstance(view.error, BadArgument) and view.state.other == ONE_ULP
    view.press("Home")
    view.press("ArrowDown")
    view.press("PageDown")
    assert view.result(ONE_ULP).gaps[view.state.step].layer == 1
    assert "<button" not in view.static() and "data-set" not in view.static()


def test_levels():
    assert [level(v) for v in (0, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2, 1e3, float("inf"))] == [
        0, 1, 1, 2, 3, 4, 5, 5,
    ]  # fmt: skip
