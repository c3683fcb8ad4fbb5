"""Attention's operations: soft-max by bits, masks, groups, storage, temperature."""

import numpy as np
import pytest
from golden_data import arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.numerics import Numerics
from synapse_edu.ops.reference import attention

OPS = arrays("ops")
PORTABLE, AVX2 = Numerics.named("llama.cpp"), Numerics.named("llama.cpp-avx2")
F32 = np.float32
presets = pytest.mark.parametrize(
    "numerics", [PORTABLE, AVX2, Numerics.named("textbook")], ids=lambda n: n.name
)


@pytest.mark.parametrize("n", [3, 8, 37, 256, 300])
@pytest.mark.parametrize(("build", "numerics"), [("scalar", PORTABLE), ("avx2", AVX2)])
def test_recorded_softmax(build, numerics, n):
    x = OPS[f"in.sm{n}"][:, None]  # (2, 1, n); the second row is masked from n // 2 on
    got = attention.softmax(x, numerics, 0.17677669, [n, n // 2], tail=True)[:, 0]
    want = OPS.get(f"{build}.softmax.{n}", OPS[f"scalar.softmax.{n}"])
    assert differing(got, want) == 0


@presets
@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_softmax_is_a_distribution_over_what_is_visible(numerics, n, seed):
    rng = np.random.default_rng(seed)
    s = (rng.normal(size=(2, 3, n)) * 10).astype(F32)
    visible = rng.integers(1, n + 1, 2)
    p = attention.softmax(s, numerics, 0.5, visible)
    for row, k in zip(p, visible, strict=True):
        assert (row[:, k:] == 0).all()
        assert np.allclose(row.astype(np.float64).sum(-1), 1, atol=1e-6)


@presets
def test_hidden_positions_change_no_bit(numerics):
    """A row padded with hidden positions, as llama.cpp's cache is, gives the same bits."""
    s = np.random.default_rng(3).normal(size=(1, 2, 21)).astype(F32)
    padded = np.concatenate([s, np.full((1, 2, 235), 99, F32)], axis=-1)
    short = attention.softmax(s, numerics, 0.3, [21])
    assert differing(attention.softmax(padded, numerics, 0.3, [21])[..., :21], short) == 0


@presets
def test_minus_infinity_gives_exact_zero_and_nan_stays_visible(numerics):
    s = np.array([[[1.0, -np.inf, 2.0, 0.5]], [[1.0, np.nan, 2.0, 0.5]]], F32)
    p = attention.softmax(s, numerics)
    assert p[0, 0, 1] == 0 and np.isfinite(p[0]).all() and np.isnan(p[1]).all()


def test_query_head_reads_the_key_head_of_its_group():
    """6 query heads over 2 key heads: 0, 1, 2 read the first and 3, 4, 5 the second."""
    rng = np.random.default_rng(4)
    q = rng.normal(size=(1, 6, 8)).astype(F32)
    keys = rng.normal(size=(2, 5, 8)).astype(np.float16)
    got = attention.scores(q, keys, PORTABLE)
    for h in range(6):
        want = q[0, h].astype(np.float16).astype(np.float64) @ keys[h // 3].T.astype(np.float64)
        assert np.allclose(got[0, h], want, rtol=1e-5, atol=1e-6)
    p = rng.random((1, 6, 5)).astype(F32)
    out = attention.weighted_values(p, keys, PORTABLE)
    for h in range(6):
        want = p[0, h].astype(np.float16).astype(np.float64) @ keys[h // 3].astype(np.float64)
        assert np.allclose(out[0, h], want, rtol=1e-5, atol=1e-6)


def test_storage_of_q_and_probabilities_are_separate_switches():
    rng = np.random.default_rng(5)
    q, p = rng.normal(size=(1, 2, 16)).astype(F32), rng.random((1, 2, 9)).astype(F32)
    keys = rng.normal(size=(1, 9, 16)).astype(np.float16)
    loose_q, loose_p = PORTABLE.replace(q="float32"), PORTABLE.replace(probabilities="float32")
    assert differing(attention.scores(q, keys, PORTABLE), attention.scores(q, keys, loose_q))
    assert not differing(attention.scores(q, keys, PORTABLE), attention.scores(q, keys, loose_p))
    weighted = [attention.weighted_values(p, keys, n) for n in (PORTABLE, loose_q, loose_p)]
    assert differing(weighted[0], weighted[1]) == 0 and differing(weighted[0], weighted[2]) > 0


def test_temperature_is_one_below_the_original_context():
    q = np.ones((4, 1, 2), F32)
    got = attention.temperature(q, [0, 15, 16, 48], 0.1, 16)[:, 0, 0]
    assert got[:2].tolist() == [1.0, 1.0]
    assert got[2] == F32(1 + 0.1 * np.log(2)) and got[3] == F32(1 + 0.1 * np.log(4))
