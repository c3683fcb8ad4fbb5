"""Sampling: the definitions of top-k, top-p and temperature, ties, seeds, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.model.sampling import Sampler, log_probabilities, ranked

LOGITS = np.array([1.0, 3.0, 3.0, -1.0], np.float32)
rows = st.lists(st.integers(-20, 20), min_size=1, max_size=30).map(
    lambda x: np.array(x, np.float32) / 4
)


def test_temperature_zero_is_argmax_with_the_lowest_id_on_a_tie():
    with np.errstate(all="raise"):
        assert Sampler(temperature=0).pick(LOGITS) == 1
        assert Sampler(temperature=0, top_k=3, top_p=0.1, seed=4).pick(LOGITS) == 1
        assert Sampler.greedy().distribution(LOGITS)[1].tolist() == [1.0]


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [1.0, np.inf], [-np.inf, -np.inf]])
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_logits_that_are_not_numbers_raise(bad, temperature):
    with pytest.raises(BadArgument, match="logits"):
        Sampler(temperature, seed=1).pick(np.array(bad, np.float32))


def test_minus_infinity_is_never_drawn():
    sampler = Sampler(seed=3)
    x = np.array([-np.inf, 0.0, -np.inf, 0.5], np.float32)
    assert {sampler.pick(x) for _ in range(200)} == {1, 3}


@settings(max_examples=150, deadline=None)
@given(rows, st.integers(0, 35), st.floats(0.01, 1.0), st.floats(0.05, 5.0))
def test_filters_follow_their_definitions(x, k, p, temperature):
    ids, probabilities = Sampler(temperature, k, p).distribution(x)
    # Written out one by one, in Python's own arithmetic.
    order = sorted(range(len(x)), key=lambda i: (-x[i], i))
    order = order[:k] if k else order
    weights = [float(np.exp(float(x[i]) - float(x[order[0]]))) for i in order]
    total, running, kept = sum(weights), 0.0, []
    for i, w in zip(order, weights, strict=True):
        kept.append(i)
        running += w / total
        if running >= p:
            break
    if p < 1 and abs(running - p) > 1e-9:  # beside a boundary either answer is rounding
        assert ids.tolist() == kept
    assert probabilities.sum() == pytest.approx(1)
    hot = [float(np.exp((float(x[i]) - float(x[ids[0]])) / temperature)) for i in ids]
    assert np.allclose(probabilities, np.array(hot) / sum(hot))


def test_filters_apply_before_the_temperature():
    """At a high temperature all four are nearly equal; top-p must not see that."""
    ids, _ = Sampler(temperature=100.0, top_p=0.9).distribution(
        np.log(np.array([0.5, 0.42, 0.05, 0.03], np.float32))
    )
    assert ids.tolist() == [0, 1]


def test_draws_follow_the_distribution():
    sampler = Sampler(temperature=0.8, seed=11)
    x = np.array([0.3, -0.2, 1.1], np.float32)
    ids, p = sampler.distribution(x)
    drawn = np.bincount([sampler.pick(x) for _ in range(20_000)], minlength=3) / 20_000
    assert np.abs(drawn[ids] - p).max() < 4 * np.sqrt(0.25 / 20_000)


def test_a_seed_gives_the_same_draws_again():
    x = np.zeros(1000, np.float32)
    a, b = Sampler(seed=5), Sampler(seed=5)
    first = [a.pick(x) for _ in range(20)]
    assert first == [b.pick(x) for _ in range(20)]
    a.restart()
    assert first == [a.pick(x) for _ in range(20)]
    assert first != [Sampler(seed=6).pick(x) for _ in range(20)]


def test_low_temperatures_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        assert Sampler(temperature=1e-300, seed=1).pick(np.array([1, 900, 2], np.float32)) == 1


@settings(max_examples=60, deadline=None)
@given(rows, st.integers(1, 35))
def test_ranked_breaks_ties_by_id(x, k):
    assert ranked(x, k).tolist() == sorted(range(len(x)), key=lambda i: (-x[i], i))[:k]


def test_log_probabilities_sum_to_one():
    p = np.exp(log_probabilities(np.array([1000, 1001, -5], np.float32)))
    assert p.sum() == pytest.approx(1) and p[1] == pytest.approx(1 / (1 + np.exp(-1)))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": "hot"},
        {"top_k": -1},
        {"top_k": 2.5},
        {"top_p": 0},
        {"top_p": 1.1},
        {"seed": -3},
        {"seed": "x"},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(BadArgument, match=next(iter(settings))):
        Sampler(**settings)
