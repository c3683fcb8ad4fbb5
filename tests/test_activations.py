"""Activation rows in 8 bits and 16: recorded bytes, ties, and what the rounding may cost."""

import gguf
import numpy as np
import pytest
from golden_data import arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.formats.activations import bf16_bits, half_away, quantize, round_to

OPS = arrays("ops")
RECORDS = {
    "Q8_0": np.dtype([("d", "<f2"), ("codes", "i1", 32)]),
    "Q8_1": np.dtype([("d", "<f2"), ("s", "<f2"), ("codes", "i1", 32)]),
    "Q8_K": np.dtype([("d", "<f4"), ("codes", "i1", 256), ("sums", "<i2", 16)]),
}
ORDERS = {"scalar": "portable", "avx2": "avx2"}


@pytest.mark.parametrize("build", ORDERS)
@pytest.mark.parametrize("partner", RECORDS)
def test_recorded_rows(partner, build):
    """The recording holds exact ties, so the two builds differ in Q8_0 and Q8_1."""
    raw = OPS.get(f"{build}.act.{partner}", OPS[f"scalar.act.{partner}"])
    want = raw.view(RECORDS[partner])
    got = quantize(OPS["in.act"][None], partner, ORDERS[build])
    assert np.array_equal(got.codes[0], want["codes"])
    assert differing(got.d[0], want["d"].astype(np.float32)) == 0
    if partner == "Q8_1":
        assert differing(got.s[0], want["s"].astype(np.float32)) == 0
    if partner == "Q8_K":
        assert np.array_equal(got.sums[0], want["sums"])


def test_recorded_sixteen_bit_rows():
    x = OPS["in.act"]
    want = OPS["scalar.act.F16"].view(np.float16).astype(np.float32)
    assert differing(round_to(x, "F16"), want) == 0
    assert np.array_equal(bf16_bits(x), OPS["scalar.act.BF16"].view(np.uint16))
    assert differing(round_to(x, "F32"), x) == 0


def row(*first, size=32, top=127.0):
    """A row whose largest value is `top`, so that with 127 a code is the value, rounded."""
    x = np.zeros((1, size), np.float32)
    x[0, : len(first)], x[0, -1] = first, top
    return x


def test_ties():
    x = row(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997)
    away = quantize(x, "Q8_0", "portable").codes[0, 0, :7].tolist()
    even = quantize(x, "Q8_0", "avx2").codes[0, 0, :7].tolist()
    assert away == [1, 2, 3, -1, -2, -3, 0] and even == [0, 2, 2, 0, -2, -2, 0]
    codes = quantize(row(0.5, 1.5, 2.5, -2.5, size=256), "Q8_K").codes[0, 0, :4]
    assert np.abs(codes).tolist() == [0, 2, 2, 2]  # both builds: half to even


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-4e6, 4e6, width=32))
def test_half_away_is_roundf(x):
    want = np.copysign(np.floor(abs(float(x)) + 0.5), x)  # float64: the sum is exact
    assert half_away(np.float32(x)) == want


def test_the_reciprocal_is_rounded_after_the_division():
    """1/(amax/127) and 127/amax differ in their last bit, and some codes with them."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4000, 32)).astype(np.float32)
    x[:, 0] = np.abs(x).max(1) * 1.25
    d = x[:, 0] / np.float32(127)
    ties = (np.arange(1, 32) + 0.5).astype(np.float32)  # near enough to a tie to tell
    x[:, 1:] = ties * d[:, None]
    other = np.float32(127) / x[:, :1]
    portable, avx2 = quantize(x, "Q8_0"), quantize(x, "Q8_0", "avx2")
    assert np.array_equal(portable.codes[:, 0], half_away(x * (np.float32(1) / d)[:, None]))
    assert np.array_equal(avx2.codes[:, 0], np.rint(x * other))
    assert (portable.codes[:, 0] != half_away(x * other)).any()  # so the inputs can tell
    assert np.array_equal(portable.d, avx2.d)


def test_q8_1_sums_with_the_unrounded_scale():
    x = np.random.default_rng(5).standard_normal((500, 32)).astype(np.float32)
    got = quantize(x, "Q8_1")
    total = got.codes[:, 0].sum(-1, dtype=np.int64).astype(np.float32)
    unrounded = np.abs(x).max(-1) / np.float32(127)
    want = (total * unrounded).astype(np.float16).astype(np.float32)
    assert differing(got.s[:, 0], want) == 0
    assert (want != (total * got.d[:, 0]).astype(np.float16)).any()


def test_q8_k_takes_the_sign_of_the_first_of_the_largest():
    x = row(2.0, -5.0, 5.0, size=512, top=1.0)
    x[0, 256] = 3.0
    got = quantize(x, "Q8_K")
    assert got.codes[0, 0, :3].tolist() == [51, -127, 127]
    assert got.codes[0, 1, 0] == -127 and got.d[0, 1] == np.float32(1) / (np.float32(-127) / 3)
    assert got.d.dtype == np.float32 and got.d[0, 0] > 0 > got.d[0, 1]
    assert got.sums[0, 0].tolist() == got.codes[0, 0].reshape(16, 16).sum(1, dtype=int).tolist()


@pytest.mark.filterwarnings("error")
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**9),
    st.sampled_from(sorted(RECORDS)),
    st.sampled_from(["portable", "avx2"]),
    st.integers(-44, 37),
)
def test_no_value_moves_by_more_than_half_a_step(seed, partner, order, exponent):
    """From denormal rows to the largest; and never a code of -128, which products rely on."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 512)) * 10.0**exponent).astype(np.float32)
    got = quantize(x, partner, order)
    block = got.codes.shape[-1]
    blocks = x.reshape(2, -1, block).astype(np.float64)
    largest = np.abs(blocks).max(-1, keepdims=True)
    assert got.codes.dtype == np.int8 and got.codes.min() >= -127
    if 1e-30 < largest.min():
        step = largest / 127
        back = got.codes * np.copysign(step, got.d[..., None])
        assert (np.abs(back - blocks) <= step * 0.501).all()


@pytest.mark.filterwarnings("error")
def test_zeros_infinities_and_nans_are_silent():
    for partner in RECORDS:
        for order in ORDERS.values():
            zero = quantize(np.zeros((1, 256), np.float32), partner, order)
            assert not zero.d.any() and not zero.codes.any()
            x = np.zeros((2, 256), np.float32)
            x[0, 3], x[1, 3] = np.inf, np.nan
            assert not np.isfinite(quantize(x, partner, order).d[:, 0]).any()
    assert round_to(np.float32([7e4, -7e4, 65519]), "F16").tolist() == [np.inf, -np.inf, 65504]


@pytest.mark.filterwarnings("error")
def test_bfloat16_rounds_half_to_even():
    bits = np.random.default_rng(6).integers(0, 1 << 32, 20000, dtype=np.uint32)
    bits[:4] = [0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x7F800001]  # ties, overflow, a quiet NaN
    x = bits.view(np.float32)
    got = bf16_bits(x)
    assert got[:4].tolist() == [0x3F80, 0x3F82, 0x7F80, 0x7FC0]
    want = gguf.quants.quantize(x, gguf.GGMLQuantizationType.BF16).view(np.uint16)
    assert np.array_equal(got, want)


def test_refusals():
    with pytest.raises(BadArgument, match="choose Q8_0, Q8_1 or Q8_K"):
        quantize(np.zeros((1, 32), np.float32), "Q4_0")
    with pytest.raises(BadArgument, match=r"multiple of 32 elements, not \(1, 33\)"):
        quantize(np.zeros((1, 33), np.float32), "Q8_0")
    with pytest.raises(BadArgument, match=r"multiple of 256 elements, not \(32,\)"):
        quantize(np.zeros(32, np.float32), "Q8_K")
