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


def test_q6_k_gives_ggmls_bytes():
    recorded = arrays("encode_k")
    assert np.array_equal(encode(recorded["x"], "Q6_K"), recorded["Q6_K"])


def test_q4_k_is_as_good_as_ggml():
    recorded = arrays("encode_k")
    x = recorded["x"]

    def errors(raw):
        return np.square(decode(raw, "Q4_K") - x).sum(axis=1)

    mine, theirs = errors(encode(x, "Q4_K")), errors(recorded["Q4_K"])
    assert np.all(mine <= 1.15 * theirs + 1e-12) and mine.sum() <= 1.03 * theirs.sum()


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


@pytest.mark.parametrize("name", ["Q8_0", "Q4_K", "Q6_K"])
def test_refusals(name):
    with pytest.raises(BadArgument, match="infinities"):
        encode(np.full(256, np.nan, np.float32), name)
    with pytest.raises(BadArgument, match="blocks of"):
        encode(np.ones(33, np.float32), name)
    with pytest.raises(UnsupportedModel, match="not made"):
        encode(np.ones(256, np.float32), "Q2_K")
