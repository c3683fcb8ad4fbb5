"""Elementary functions: the bits of glibc's, recorded; fma against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from golden_data import arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.ops import constants
from synapse_edu.ops.reference import elementary as el

F32 = np.float32
RECORDED = arrays("elementary")
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", ["sinf", "cosf", "expf", "logf"])
def test_bits_of_glibc(name):
    assert differing(getattr(el, name)(RECORDED["x"]), RECORDED[name]) == 0


def test_powf_has_the_bits_of_glibc():
    got = el.powf(RECORDED["pow_x"], RECORDED["pow_y"])
    assert differing(got, RECORDED["powf"]) == 0


def test_reduction_has_one_rounding():
    # With π/2 as a single double and two roundings, this cosine comes out one unit off.
    assert el.cosf(F32(98.68684387207031)) == F32(-0.26993420720100403)


@pytest.mark.parametrize("name", ["sinf", "cosf", "expf", "logf"])
def test_scalars_and_shapes_pass_through(name):
    f = getattr(el, name)
    x = np.linspace(0.1, 200, 12, dtype=F32)
    assert f(x.reshape(3, 4)).shape == (3, 4)
    assert f(x[0]).shape == () and f(x[0]) == f(x)[0]
    assert f(x).dtype == F32


def nearest(value):
    """The float32 nearest to a fraction, ties to even, from its two neighbours."""
    if value == 0:
        return None  # the sign of a zero is checked apart
    size = abs(value)
    e = max(math.floor(math.log2(size)) if size >= 1 else -math.ceil(math.log2(1 / size)), -126)
    while Fraction(2) ** (e + 1) <= size:
        e += 1
    while e > -126 and Fraction(2) ** e > size:
        e -= 1
    unit = Fraction(2) ** (e - 23)
    n = round(size / unit)  # Fraction rounds half to even
    result = n * unit
    if result >= Fraction(2) ** 128:
        return math.copysign(math.inf, value)
    return math.copysign(float(result), value)


@settings(max_examples=400, deadline=None)
@given(floats, floats, floats)
def test_fma_rounds_once(a, b, c):
    want = nearest(Fraction(a) * Fraction(b) + Fraction(c))
    got = float(el.fma(F32(a), F32(b), F32(c)))
    assert got == (0.0 if want is None else want)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 4095), st.integers(0, 4095), st.integers(-40, 40), st.sampled_from([1, -1]))
def test_fma_near_ties(i, j, e, sign):
    """Products of 24 bits, and an addend that puts the sum beside the middle of two floats."""
    a, b = F32(1 + i / 4096), F32(1 + j / 4096)
    c = F32(sign * 2.0**e)
    want = nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
    assert float(el.fma(a, b, c)) == (0.0 if want is None else want)


def test_fma_shows_infinities_and_nan_without_warnings():
    with np.errstate(all="raise"):
        x = el.fma(
            F32([np.inf, np.nan, 3e38, np.inf]), F32([1, 1, 3e38, 1]), F32([0, 0, 0, -np.inf])
        )
    assert x[0] == np.inf and np.isnan(x[1]) and x[2] == np.inf and np.isnan(x[3])


@pytest.mark.parametrize("fused", [False, True])
def test_exp_poly_is_within_two_units_and_exact_at_the_ends(fused):
    x = np.random.default_rng(5).uniform(-103, 88, 20_000).astype(F32)
    want = np.exp(x.astype(np.float64))
    unit = np.maximum(np.spacing(want.astype(F32)).astype(np.float64), 2.0**-149)
    assert (np.abs(el.exp_poly(x, fused) - want) / unit).max() < 2.0
    ends = el.exp_poly(F32([-np.inf, -200, 200, np.inf, 0, np.nan]), fused)
    assert ends[:5].tolist() == [0.0, 0.0, np.inf, np.inf, 1.0] and np.isnan(ends[5])


def test_fused_and_unfused_polynomials_differ_somewhere():
    x = np.random.default_rng(6).normal(size=2000).astype(F32)
    assert differing(el.exp_poly(x, True), el.exp_poly(x, False)) > 0


def test_float64_exp_and_log_are_within_two_units():
    rng = np.random.default_rng(7)
    x = rng.uniform(-700, 700, 5000)
    want = np.array([math.exp(v) for v in x])
    assert (np.abs(el.exp(x) - want) / np.spacing(want)).max() <= 2
    y = np.exp(rng.uniform(-700, 700, 5000))
    want = np.array([math.log(v) for v in y])
    assert (np.abs(el.log(y) - want) / np.spacing(np.abs(want))).max() <= 2
    assert el.exp(np.array([-np.inf, np.inf, 0.0])).tolist() == [0.0, np.inf, 1.0]
    assert el.log(np.array([1.0])).tolist() == [0.0]


def test_exp_exact_rounds_the_float64_result_once():
    x = np.random.default_rng(8).uniform(-90, 88, 20_000).astype(F32)
    want = np.array([math.exp(v) for v in x.astype(np.float64)]).astype(F32)
    assert differing(el.exp_exact(x), want) == 0


def test_the_table_of_powers_is_right():
    """Entry i is 2^(i/32) to the nearest double: checked in whole numbers."""
    for i, bits in enumerate(constants.EXP2_TABLE.tolist()):
        value = Fraction(float(np.uint64(bits + (i << 47)).view(np.float64)))
        half = Fraction(2) ** -53
        assert (value - half) ** 32 < Fraction(2) ** i < (value + half) ** 32


def test_no_warnings_on_any_bits():
    x = np.random.default_rng(9).integers(0, 2**32, 20_000, dtype=np.uint32).view(F32)
    with np.errstate(all="raise"):
        for name in ("sinf", "cosf", "expf", "logf", "exp_poly", "exp_exact"):
            getattr(el, name)(x)
        el.powf(x, x[::-1])
