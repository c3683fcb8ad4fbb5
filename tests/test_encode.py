"""Encoding: the bytes that ggml would write, and errors no larger than a step."""

import gguf
import numpy as np
import pytest
from golden_data import arrays
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument, UnsupportedModel
from synapse_edu.formats.decode import decode
from synapse_edu.formats.encode import MADE, encode
from synapse_edu.formats.encode_k import pack_six_bit_scales
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.unpack import six_bit_scales

SIMPLE = [name for name in MADE if not name.endswith("_K")]


def rows(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((12, 512)).astype(np.float32)
    x[0, :32], x[1, :64], x[2] = 0, np.arange(64) - 32, 0.25
    x[3] *= 1e-4
    x[4] = np.abs(x[4])
    return x


@pytest.mark.parametrize("name", SIMPLE)
def test_the_bytes_of_gguf(name):
    want = gguf.quants.quantize(rows(), gguf.GGMLQuantizationType[name])
    assert np.array_equal(encode(rows(), name), want.view(np.uint8).reshape(12, -1))


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K"])
def test_the_bytes_of_ggml(name):
    recorded = arrays("encode_k")
    assert np.array_equal(encode(recorded["x"], name), recorded[name])


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_blocks_of_zeros_do_not_depend_on_the_signs(name, zero):
    x = np.full((1, 256), zero, np.float32)
    assert not decode(encode(x, name), name).any()
    if name in ("Q4_0", "Q5_0"):  # ggml's extreme starts at +0 and is divided by a negative number
        assert np.signbit(encode(x, name)[0, :2].view(np.float16)[0])


LIMITS = {"F16": 6e-4, "BF16": 5e-3, "Q8_0": 0.006, "Q6_K": 0.03, "Q5_0": 0.07, "Q5_1": 0.05}
LIMITS |= {"Q4_K": 0.1, "Q4_0": 0.13, "Q4_1": 0.1, "F32": 0.0}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(MADE), st.floats(1e-3, 1e3))
def test_round_trips_stay_close(seed, name, size):
    x = (np.random.default_rng(seed).standard_normal((2, 256)) * size).astype(np.float32)
    back = decode(encode(x, name), name)
    most = np.abs(x).reshape(2, -1, min(FORMATS[name].block, 256) if FORMATS[name].block > 1 else 1)
    limit = LIMITS[name] * most.max(-1, keepdims=True)
    assert (np.abs(back - x).reshape(most.shape) <= limit + 1e-30).all()


def test_six_bit_scales_pack_and_unpack():
    rng = np.random.default_rng(0)
    scales, mins = rng.integers(0, 64, (2, 50, 8)).astype(np.uint8)
    again = six_bit_scales(pack_six_bit_scales(scales, mins))
    assert np.array_equal(again[0], scales) and np.array_equal(again[1], mins)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(MADE), st.integers(-44, -30))
@pytest.mark.filterwarnings("error")
def test_values_that_vanish_decode_to_almost_nothing(seed, name, exponent):
    """Scales that float16 or even float32 cannot hold: no warning, no garbage."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 256)) * 10.0**exponent).astype(np.float32)
    assert (np.abs(decode(encode(x, name), name)) <= 2 * np.abs(x).max()).all()


@pytest.mark.parametrize("name", [name for name in MADE if not FORMATS[name].is_float])
def test_values_beyond_the_scale_are_refused(name):
    x = np.linspace(-3e38, 3e38, 256, dtype=np.float32)
    with pytest.raises(BadArgument, match=f"{name}: values as large as 3e.38 need a scale above"):
        encode(x, name)


@pytest.mark.parametrize("name", ["Q8_0", "Q4_K", "Q6_K"])
def test_refusals(name):
    with pytest.raises(BadArgument, match="infinities"):
        encode(np.full(256, np.nan, np.float32), name)
    with pytest.raises(BadArgument, match="blocks of"):
        encode(np.ones(33, np.float32), name)
    with pytest.raises(UnsupportedModel, match="not made"):
        encode(np.ones(256, np.float32), "Q2_K")
