"""Next-token bars: the model's probabilities and the sampler's, each as the engine has them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.model.sampling import Sampler, log_probabilities
from synapse_edu.views import NextTokenBars
from synapse_edu.views.next_token import BarsState, bars, render

LOGITS = np.array([1.0, 3.0, 2.0, 3.0, -np.inf, 0.0], np.float32)


class Tokens:
    """A tokenizer of six tokens, one of them hostile."""

    def piece(self, i, special=False):
        assert special
        return [b"a", b" b", b"<script>", b"\n", b"\xff", b"f"][i]


def piece(i):
    return Tokens().piece(i, special=True)


def test_equal_logits_stand_in_order_of_id():
    assert [b.id for b in bars(LOGITS, piece, BarsState(n=4))] == [1, 3, 2, 0]


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 3), st.integers(0, 8), st.floats(0.05, 1), st.integers(0, 2**32 - 1))
def test_bars_agree_with_the_sampler_and_the_model(temperature, top_k, top_p, seed):
    logits = np.random.default_rng(seed).normal(size=6).astype(np.float32) * 3  # (6,)
    state = BarsState(temperature, top_k, top_p, n=6)
    shown = bars(logits, piece, state)
    ids, chances = Sampler(temperature, top_k, top_p).distribution(logits)
    assert {b.id: b.drawn for b in shown if b.drawn} == {
        i: c for i, c in zip(ids.tolist(), chances.tolist(), strict=True) if c
    }
    model = np.exp(log_probabilities(logits))
    assert [b.model for b in shown] == [model[b.id] for b in shown]
    assert abs(sum(b.drawn for b in shown) - 1) < 1e-9


def test_a_removed_token_is_said_to_be_removed():
    html = render(LOGITS, piece, BarsState(top_k=1, n=3, chosen=1))
    assert "never drawn: the sampler removed it" in html
    assert html.count(">removed<") == 2
    greedy = render(LOGITS, piece, BarsState(temperature=0, n=3))
    assert "drawn with 1.000" in greedy


def test_tokens_are_shown_not_run():
    html = render(LOGITS, piece, BarsState(n=6))
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "␊" in html and "⟨FF⟩" in html and "␣b" in html


def test_controls_and_keys():
    view = NextTokenBars(LOGITS, Tokens(), n=4)
    view.choose("temperature", "0.5")
    view.choose("top_k", "2")
    view.choose("top_p", "0.9")
    assert (view.state.temperature, view.state.top_k, view.state.top_p) == (0.5, 2, 0.9)
    assert view.values() == {"temperature": "0.5", "top_k": "2", "top_p": "0.9"}
    view.press("End")
    assert view.state.chosen == 3 and re.search(r'role="status"[^>]*>a \(id 0\)', view.html)
    view.choose("top_p", "0")
    assert "top_p" in str(view.error) and view.state.top_p == 0.9


def test_more_bars_than_tokens_are_cut():
    assert NextTokenBars(LOGITS, Tokens(), n=50).state.n == 6


def test_logits_that_are_not_numbers_are_refused():
    with pytest.raises(BadArgument, match="NaN"):
        NextTokenBars(np.array([1.0, np.nan], np.float32), Tokens())
