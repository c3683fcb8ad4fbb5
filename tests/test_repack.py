"""Packed weights: sizes, padding, every bit kept, refusals; the count of what kernels execute."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fast_matmul import random_rows, random_weights, width

from synapse_edu.errors import BadArgument
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.matrix import Matrix
from synapse_edu.numerics import Numerics
from synapse_edu.ops.fast import repack
from synapse_edu.ops.fast.jit import njit
from synapse_edu.ops.fast.kernels import (
    ROW_UNIT,
    call_matmat,
    call_matvec,
    call_quantize,
    call_quantize_batch,
    for_format,
    mode_of,
)
from synapse_edu.ops.fast.memory import aligned_empty

F32 = np.float32
MODES = ("blocks", "synapse", "float32")
NAMES = sorted(FORMATS)


def pack(weight, mode="blocks", fill=0xAA):
    """Packed bytes, written over a pattern so that a byte left out is seen."""
    out = aligned_empty(repack.packed_bytes(weight.format, *weight.shape, mode))
    out[:] = fill
    repack.pack(weight, mode, out)
    return out


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(NAMES), st.integers(1, 20), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_every_byte_is_written_and_rows_are_padded(name, n_out, n_block, seed):
    weight = random_weights(name, n_out, width(name, n_block), np.random.default_rng(seed), True)
    for mode in MODES:
        packed = pack(weight, mode)
        assert np.array_equal(packed, pack(weight, mode, fill=0x55))
        whole = repack.padded_rows(n_out)
        assert whole % ROW_UNIT == 0 and n_out <= whole < n_out + ROW_UNIT
        assert packed.size % (whole // ROW_UNIT) == 0


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.sampled_from([n for n in NAMES if n != "MXFP4"]),  # two of its codes stand for zero
    st.integers(0, 2**32 - 1),
)
def test_every_bit_of_the_file_reaches_the_packed_copy(name, seed):
    rng = np.random.default_rng(seed)
    weight = random_weights(name, 9, width(name, 2), rng)
    raw = weight.raw.copy()
    raw[rng.integers(0, 9), rng.integers(0, raw.shape[1])] ^= np.uint8(1 << rng.integers(0, 8))
    other = Matrix(raw, name, weight.n_in)
    assert not np.array_equal(pack(weight), pack(other))


@pytest.mark.parametrize("name", NAMES)
def test_packing_takes_little_more_room_than_the_file(name):
    n_in = 512
    weight = random_weights(name, 16, n_in, np.random.default_rng(0))
    assert repack.packed_bytes(name, 16, n_in) <= 1.13 * weight.nbytes


def test_what_the_file_holds_may_serve_as_it_stands():
    weight = random_weights("Q5_K", 16, 256, np.random.default_rng(0))
    assert repack.layout("Q5_K", "float32") == "rows"
    assert repack.usable_as_stored(weight, "float32")
    assert np.array_equal(pack(weight, "float32"), weight.raw.reshape(-1))
    odd = Matrix(weight.raw[:15], "Q5_K", 256)
    assert not repack.usable_as_stored(odd, "float32")
    assert not repack.usable_as_stored(weight, "blocks")
    layouts = {repack.layout(name) for name in NAMES}
    assert len(layouts - {"rows"}) == len([n for n in NAMES if repack.layout(n) != "rows"])


def test_rows_from_a_read_only_file(tmp_path):
    weight = random_weights("Q4_K", 11, 512, np.random.default_rng(5))
    path = tmp_path / "weights.bin"
    path.write_bytes(b"abc" + weight.raw.tobytes())  # not aligned to anything
    mapped = np.memmap(path, np.uint8, "r", offset=3, shape=weight.raw.shape)
    assert np.array_equal(pack(Matrix(mapped, "Q4_K", 512)), pack(weight))
    strided = Matrix(np.repeat(weight.raw, 2, axis=0)[::2], "Q4_K", 512)
    assert np.array_equal(pack(strided), pack(weight))


@pytest.mark.parametrize("spoil", ["short", "type", "misaligned"])
def test_pack_refuses_room_that_does_not_fit(spoil):
    weight = random_weights("Q8_0", 8, 64, np.random.default_rng(0))
    n = repack.packed_bytes("Q8_0", 8, 64)
    room = {
        "short": lambda: aligned_empty(n - 1),
        "type": lambda: aligned_empty(n).view(np.int8),
        "misaligned": lambda: aligned_empty(n + 1)[1:],
    }[spoil]()
    with pytest.raises(BadArgument, match=f"{n} bytes"):
        repack.pack(weight, "blocks", room)


def test_an_unknown_mode_is_refused():
    with pytest.raises(BadArgument, match="choose one of blocks, synapse, float32"):
        repack.packed_bytes("Q8_0", 8, 64, "avx2")


def test_modes_of_the_presets():
    """F16 and BF16 alone tell "llama.cpp" and "synapse" apart."""
    for name in NAMES:
        modes = [mode_of(name, Numerics.named(p)) for p in ("llama.cpp", "synapse", "textbook")]
        middle = "synapse" if name in ("F16", "BF16") else "blocks"
        assert modes == ["blocks", middle, "float32"]
    for numerics in ("llama.cpp-avx2", Numerics.named("textbook").replace(order="portable")):
        with pytest.raises(BadArgument, match="reference"):
            mode_of("Q4_0", Numerics.named(numerics))


@njit
def _shares(kernels, w, x, y, out, n_in, bounds, n_tokens, stride, scratch):
    """A product in shares of rows, as threads take them."""
    quantize, batch, matvec, matmat = kernels
    for t in range(n_tokens):
        if n_tokens == 1:
            call_quantize(quantize, x, y, n_in)
        else:
            call_quantize_batch(batch, x + 4 * n_in * t, y, n_in, t, n_tokens)
    for i in range(len(bounds) - 1):
        a, b = bounds[i], bounds[i + 1]
        if n_tokens == 1:
            call_matvec(matvec, w, y, out, n_in, a, b, scratch)
        else:
            call_matmat(matmat, w, y, out, n_in, a, b, n_tokens, stride, scratch)


def product(weight, x, bounds, mode="blocks"):
    """Products (n, padded rows), and the multiply-accumulates that the kernels counted."""
    k = for_format(weight.format, mode)
    n, n_in, stride = len(x), weight.n_in, repack.padded_rows(weight.n_out) + 5
    w, y = pack(weight, mode), aligned_empty(k.activation_bytes(n_in, n))
    scratch = aligned_empty(k.scratch_bytes(n_in, n))
    scratch[:8] = 0
    out = np.full((n, stride), np.nan, F32)  # (n, padded n_out + 5)
    table = k.quantize, k.quantize_batch, k.matvec, k.matmat
    at = [a.ctypes.data for a in (w, x, y, out)]
    _shares(table, *at, n_in, np.array(bounds), n, stride, scratch.ctypes.data)
    return out, int(scratch[:8].view(np.int64)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 5, 66])
def test_shares_of_rows_give_the_same_and_are_counted(name, n):
    """Whatever the shares: the same bits, nothing written elsewhere, padding rows are zero."""
    rng = np.random.default_rng(n)
    n_in = width(name, 2)
    weight, x = random_weights(name, 21, n_in, rng), random_rows(n, n_in, rng)
    whole, count = product(weight, x, (0, 24))
    assert count == 24 * n_in * n
    parts, count = product(weight, x, (0, 8, 8, 24))
    assert count == 24 * n_in * n
    assert np.array_equal(whole.view(np.uint32), parts.view(np.uint32))
    assert np.all(whole[:, 21:24] == 0) and np.all(np.isnan(whole[:, 24:]))
    some, count = product(weight, x, (8, 16))
    assert count == 8 * n_in * n
    assert np.array_equal(some[:, 8:16], whole[:, 8:16])
    assert np.all(np.isnan(some[:, :8])) and np.all(np.isnan(some[:, 16:]))
