"""Matrix products: recorded dot products of both builds, by bits; every switch by itself."""

import numpy as np
import pytest
from golden_data import arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.formats.activations import quantize, round_to
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.matrix import Matrix
from synapse_edu.formats.unpack import unpack
from synapse_edu.numerics import Numerics
from synapse_edu.ops.reference import dots_portable
from synapse_edu.ops.reference import matmul as module
from synapse_edu.ops.reference.matmul import float_dot, matmul

OPS, MANY = arrays("ops"), arrays("matmul")
PORTABLE, TEXTBOOK = Numerics.named("llama.cpp"), Numerics.named("textbook")
AVX2 = Numerics.named("llama.cpp-avx2")
BUILDS = {"scalar": PORTABLE, "avx2": AVX2, "avx2_norepack": AVX2.replace(repack=False)}
RECORDED = sorted({tuple(key.split(".")[:2]) for key in MANY if not key.startswith("x.")})
F32 = np.float32

pytestmark = pytest.mark.filterwarnings("error")


def weights(name, n_out=8, n_in=512, seed=0):
    """Random bytes with finite scales: every code and sub-block scale occurs."""
    known = FORMATS[name]
    rng = np.random.default_rng(seed)
    if known.is_float:
        return Matrix.from_float32(rng.standard_normal((n_out, n_in)), name)
    raw = rng.integers(0, 256, (n_out, n_in // known.block * known.nbytes), dtype=np.uint8)
    for field in {"d", "dmin", "m"} & set(known.dtype.names):
        scales = raw.view(known.dtype)[field]
        scales[...] = rng.standard_normal(scales.shape) * 0.01
    if name == "MXFP4":
        raw.view(known.dtype)["e"] = rng.integers(110, 130, (n_out, n_in // 32, 1))
    return Matrix(raw, name, n_in)


def rows(n, n_in=512, seed=1):
    return np.random.default_rng(seed).standard_normal((n, n_in)).astype(F32)


# --- recordings ----------------------------------------------------------------------------------
@pytest.mark.parametrize("build", ["scalar", "avx2_norepack"])
@pytest.mark.parametrize("name", FORMATS)
def test_recorded_dot_products(name, build):
    """Rows of 1536 (of F32 only 1500, which leaves a tail), and an odd number of blocks."""
    x, recording = OPS["in.act"][None], build.split("_")[0]
    want = OPS.get(f"{recording}.dot.{name}", OPS[f"scalar.dot.{name}"])
    if name == "F32":
        got = matmul(Matrix.from_float32(OPS["in.w"][:, :1500]), x[:, :1500], BUILDS[build])[0]
        assert differing(got, want) == 0
        return
    raw = OPS[f"fmt.{name}.raw"]
    assert differing(matmul(Matrix(raw, name, 1536), x, BUILDS[build])[0], want) == 0
    known = FORMATS[name]
    k = 256 if known.block == 256 else 96
    short = Matrix(raw[:, : k // known.block * known.nbytes], name, k)
    want = OPS.get(f"{recording}.dot_short.{name}", OPS[f"scalar.dot_short.{name}"])
    assert differing(matmul(short, x[:, 1024 : 1024 + k], BUILDS[build])[0], want) == 0


@pytest.mark.parametrize("build", ["scalar", "avx2"])
def test_recorded_attention_products(build):
    """q·k with float16 and float32 keys of 80 and 91 elements."""
    for keys, x in (("mm16_k", "mm_x"), ("mm32_k", "mm_x91")):
        kind = {"mm16_k": "F16", "mm32_k": "F32"}[keys]
        got = float_dot(OPS[f"in.{keys}"], round_to(OPS[f"in.{x}"], kind), BUILDS[build])
        assert differing(got, OPS[f"{build}.mm.{kind.lower()}"]) == 0


@pytest.mark.parametrize(("name", "k"), RECORDED)
def test_recorded_products_of_many_rows(name, k):
    """Codes at their limits, infinite scales, zeros of both signs, ties, 1e30 and 1e-38.

    `Q4_0.64` has products of more than 13 bits, where the order of its two scales shows.
    """
    raw, x = MANY[f"{name}.{k}.raw"], MANY[f"x.{k}"]
    weight, seven = Matrix(raw, name, int(k)), Matrix(raw[:7], name, int(k))
    wrong, compared = [], 0
    for key, want in MANY.items():
        if not key.startswith(f"{name}.{k}.") or key.endswith(".raw"):
            continue
        build, size = key.split(".")[2], int((key.split(".") + ["9"])[3])
        w, numerics = weight, BUILDS.get(build)
        if build == "avx2_seven_rows":
            w, numerics = seven, AVX2
        got = [matmul(w, x[i : i + size], numerics) for i in range(0, 9, size)]
        compared += 1
        if differing(np.concatenate(got), want):
            wrong.append(key)
    assert compared and not wrong


# --- a product is the same alone and among others ------------------------------------------------
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(["llama.cpp", "synapse", "textbook"]),
    st.integers(1, 40),
    st.integers(1, 70),
    st.integers(1, 3),
)
def test_prefill_is_decode_row_by_row(name, numerics, n, n_out, n_block):
    """Sizes lie on both sides of the point from which float sums are taken together."""
    n_in = 256 * n_block - (77 if FORMATS[name].is_float else 0)
    weight, x = weights(name, n_out, n_in, n), rows(n, n_in, n_out)
    whole = matmul(weight, x, Numerics.named(numerics))
    single = [matmul(weight, x[i : i + 1], Numerics.named(numerics)) for i in range(n)]
    assert differing(whole, np.concatenate(single)) == 0


@pytest.mark.parametrize("name", ["F16", "Q4_1", "Q5_K", "IQ4_XS"])
def test_weights_taken_apart_in_pieces(name, monkeypatch):
    weight, x = weights(name, 50), rows(3)
    whole = matmul(weight, x, PORTABLE)
    monkeypatch.setattr(module, "CHUNK", 16 * 512)
    assert differing(matmul(weight, x, PORTABLE), whole) == 0


# --- the switches --------------------------------------------------------------------------------
def slow_dot(w, x, exact):
    """One float64 sum after the other, of products that are exact or rounded to float32."""
    out = np.empty((len(x), len(w)), F32)
    for i, row in enumerate(x):
        for j, weight in enumerate(w):
            total = 0.0
            for a, b in zip(weight.tolist(), row.tolist(), strict=True):
                total += a * b if exact else float(F32(a * b))
            out[i, j] = F32(total)
    return out


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q8_0", "Q2_K", "Q6_K"])
def test_textbook_is_a_float64_sum_over_decoded_weights(name):
    weight, x = weights(name, 4, 256), rows(2, 256)
    assert differing(matmul(weight, x, TEXTBOOK), slow_dot(weight.rows(), x, True)) == 0


@pytest.mark.parametrize("name", ["F16", "BF16"])
def test_synapse_leaves_activations_of_float_weights_alone(name):
    weight, x = weights(name, 4, 256), rows(2, 256)
    got = matmul(weight, x, Numerics.named("synapse"))
    assert differing(got, slow_dot(weight.rows(), x, False)) == 0
    assert differing(got, matmul(weight, x, PORTABLE)) > 0
    quantized = weights("Q4_K", 4, 256)
    got = matmul(quantized, x, Numerics.named("synapse"))
    assert differing(got, matmul(quantized, x, PORTABLE)) == 0


@pytest.mark.parametrize("name", ["Q4_0", "Q5_1", "Q4_K"])
def test_unrounded_activations_in_the_portable_order(name):
    weight, x = weights(name, 4, 256), rows(2, 256)
    got = matmul(weight, x, PORTABLE.replace(activations="float32"))
    assert differing(got, slow_dot(weight.rows(), x, False)) == 0


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K"])
def test_rounded_activations_in_the_float64_order(name):
    weight, x = weights(name, 4, 256), rows(2, 256)
    y = quantize(x, FORMATS[name].partner)
    rounded = (y.codes * y.d[..., None]).reshape(2, 256)  # what the codes stand for
    got = matmul(weight, x, PORTABLE.replace(order="float64"))
    assert differing(got, slow_dot(weight.rows(), rounded, True)) == 0


@pytest.mark.parametrize("name", ["Q4_0", "Q6_K"])
def test_unrounded_activations_in_the_avx2_order(name):
    """Decoded weights go the way of F32 weights."""
    weight, x = weights(name, 6, 256), rows(3, 256)
    got = matmul(weight, x, AVX2.replace(activations="float32"))
    want = matmul(Matrix.from_float32(weight.rows()), x, AVX2)
    assert differing(got, want) == 0 and differing(got, matmul(weight, x, AVX2)) > 0


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K", "IQ4_NL", "MXFP4"])
def test_repacking_needs_rows_by_eight(name):
    x = rows(1)
    for n_out, changes in ((8, True), (7, False), (12, False)):
        weight = weights(name, n_out)
        plain = matmul(weight, x, BUILDS["avx2_norepack"])
        assert (differing(matmul(weight, x, AVX2), plain) > 0) == changes


# --- the claims in the comments ------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name, f in FORMATS.items() if f.n_sub])
def test_integer_products_stay_exact_at_their_limits(name):
    """All codes, scales and activations at their largest: float32 sums still equal integers."""
    known = FORMATS[name]
    for byte in (0, 255, 0x7F, 0x80, 0x0F, 0xF0, 0x3F, 0xC0):
        raw = np.full((1, known.nbytes), byte, np.uint8)
        scaled = unpack(raw, name).codes.reshape(1, known.n_sub, -1).astype(np.int64)
        scaled *= unpack(raw, name).scales.reshape(1, known.n_sub, 1)
        lanes = scaled.reshape(1, 32, 8).swapaxes(1, 2)  # (1, 8, 32)
        for sign in (np.full_like(lanes, 127), np.where(lanes < 0, -127, 127)):
            want = (lanes * sign).sum(-1)[0]
            got = dots_portable.integer_dot(lanes.astype(np.int16), sign.astype(np.int8))[:, 0, 0]
            assert got.tolist() == want.tolist() and np.abs(want).max() < 1 << 24


@pytest.mark.parametrize("numerics", [PORTABLE, TEXTBOOK, AVX2])
@pytest.mark.parametrize("n_out", [3, 2000])
def test_sums_of_negative_zeros_are_zero(numerics, n_out):
    """C starts a sum from 0, and 0 + -0 is 0."""
    weight = Matrix.from_float32(np.full((n_out, 40), -1.0))
    got = matmul(weight, np.zeros((1, 40), F32), numerics)
    assert not got.any() and not np.signbit(got).any()


# --- ends ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("numerics", BUILDS.values())
@pytest.mark.parametrize("name", ["F32", "Q8_0", "Q4_K"])
def test_no_tokens_and_no_rows(name, numerics):
    weight = weights(name)
    assert matmul(weight, rows(0), numerics).shape == (0, 8)
    none = Matrix(weight.raw[:0], name, 512)
    assert matmul(none, rows(2), numerics).shape == (2, 0)


def test_refusals():
    weight = Matrix.from_float32(np.ones((2, 32)), "Q8_0", "blk.0.attn_q.weight")
    for wrong in (np.ones((1, 64)), np.ones(32), np.ones((1, 1, 32))):
        with pytest.raises(BadArgument, match="blk.0.attn_q.weight: rows of 32 numbers are needed"):
            matmul(weight, wrong, PORTABLE)
