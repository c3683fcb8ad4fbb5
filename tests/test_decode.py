"""Decoding: every format by bits, against recordings and against PyPI's gguf on random bytes."""

import warnings

import gguf
import numpy as np
import pytest
from golden_data import arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.formats.decode import decode, values
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.unpack import unpack

OPS = arrays("ops")
BLOCKS = [name for name, f in FORMATS.items() if not f.is_float]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "F32"])
def test_recorded_values(name):
    raw = OPS[f"fmt.{name}.raw"]
    assert differing(decode(raw, name), OPS[f"fmt.{name}.deq"]) == 0
    raw = OPS[f"fmt.{name}.rand_raw"]
    assert differing(decode(raw, name).ravel(), OPS[f"fmt.{name}.rand_deq"]) == 0


def gguf_decode(raw, name):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = gguf.GGMLQuantizationType[name]
        if name == "F32":
            return raw.view(np.float32)
        return np.asarray(gguf.quants.dequantize(raw, kind), np.float32)


@pytest.mark.filterwarnings("error")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(FORMATS)), st.integers(1, 5), st.integers(0, 10**9))
def test_random_bytes_as_gguf_decodes_them(name, n_block, seed):
    """Infinite, NaN and denormal scales among them; silently."""
    known = FORMATS[name]
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (3, n_block * known.nbytes), dtype=np.uint8)
    for field in ("d", "dmin", "m"):
        if field in known.dtype.names and rng.random() < 0.3:
            raw.view(known.dtype)[field][1] = rng.choice([np.inf, -np.inf, np.nan, 6e-8, -0.0])
    assert differing(decode(raw, name), gguf_decode(raw, name)) == 0


@pytest.mark.filterwarnings("error")
def test_every_float16_and_bfloat16():
    codes = np.arange(1 << 16, dtype="<u2").view(np.uint8)
    assert differing(decode(codes, "F16"), gguf_decode(codes, "F16")) == 0
    assert differing(decode(codes, "BF16"), gguf_decode(codes, "BF16")) == 0


@pytest.mark.parametrize("exponent", [0, 1, 2, 127, 255])
def test_mxfp4_exponents(exponent):
    """The shared exponent reaches below float32's normal numbers and, times 12, above them."""
    raw = np.array([exponent] + [0x71] * 16, np.uint8)
    want = np.ldexp([1.0] * 16 + [12.0] * 16, exponent - 128)
    assert decode(raw, "MXFP4").tolist() == np.where(want < 2.0**128, want, np.inf).tolist()


def test_low_nibbles_come_first():
    raw = np.concatenate([np.array([1], "<f2").view(np.uint8), np.arange(16, dtype=np.uint8)])
    raw[2:] |= 0xF0
    assert decode(raw, "Q4_0").tolist() == [*range(-8, 8), *[7] * 16]


@pytest.mark.parametrize("name", BLOCKS)
def test_codes_stay_in_their_range(name):
    """Bounds that the exact integer products of `matmul` rest on."""
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 256, (4, 40 * FORMATS[name].nbytes), dtype=np.uint8)
    b = unpack(raw, name)
    most_code = {"Q4_0": 8, "Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "Q8_0": 128, "IQ4_NL": 127}
    most_code |= {"MXFP4": 12, "Q2_K": 3, "Q3_K": 4, "Q4_K": 15, "Q5_K": 31, "Q6_K": 32}
    most_code |= {"IQ4_XS": 127}
    assert np.abs(b.codes.astype(int)).max() == most_code[name]
    if b.scales is not None:
        most_scale = {"Q2_K": 15, "Q4_K": 63, "Q5_K": 63, "Q6_K": 128}.get(name, 32)
        assert np.abs(b.scales).max() <= most_scale
        assert b.scales.shape == (4, 40, FORMATS[name].n_sub)
        assert (b.mins is None) == (name not in ("Q2_K", "Q4_K", "Q5_K"))
    with np.errstate(all="ignore"):
        assert differing(values(b).reshape(4, -1), decode(raw, name)) == 0


@pytest.mark.parametrize("name", FORMATS)
def test_shapes(name):
    """Leading axes are kept, rows may be a strided read-only view, and there may be none."""
    known = FORMATS[name]
    rng = np.random.default_rng(2)
    raw = rng.integers(0, 64, (2, 3, 4 * known.nbytes), dtype=np.uint8)
    raw.setflags(write=False)
    whole = decode(raw, name)
    assert whole.shape == (2, 3, 4 * known.block) and whole.dtype == np.float32
    assert differing(decode(raw[:, ::-1], name), whole[:, ::-1]) == 0
    assert differing(decode(raw[1, 2], name), whole[1, 2]) == 0
    assert decode(raw[:, :0], name).shape == (2, 0, 4 * known.block)


def test_refusals():
    with pytest.raises(BadArgument, match="a multiple of 34; these are uint8 of shape \\(33,\\)"):
        decode(np.zeros(33, np.uint8), "Q8_0")
    with pytest.raises(BadArgument, match="rows must be bytes.*float32"):
        decode(np.zeros(34, np.float32), "Q8_0")
    with pytest.raises(BadArgument, match="'Q9' is not a format"):
        decode(np.zeros(34, np.uint8), "Q9")
    with pytest.raises(BadArgument, match="BF16 has no integer codes"):
        unpack(np.zeros(34, np.uint8), "BF16")
