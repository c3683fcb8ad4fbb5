"""Quantized weights decoded to float32 on the way, for Numerics that round no activations.

Eight rows of one block at a time are decoded, side by side, and met by every token.  Products are
exact in float64 (24 bits times 24 bits) and added left to right: the order ``"float64"``.
"""

from numba import float32

from ..jit import inner
from ..memory import f32_at, u8_at
from ..registers import F32, F32x8, F64x8
from ..simd import kernel
from .unpack import BLOCK_BYTES, UNPACK, block_at

TOKENS = 4  # whose sums stay in registers while a block passes by
BLOCK_AT = 64  # in scratch: a block taken apart, its values (256, row 8), the sums of every token
VALUES_AT = BLOCK_AT + BLOCK_BYTES
SUMS_AT = VALUES_AT + 256 * 32


def scratch_bytes(n_in, n_tokens):
    return SUMS_AT + 64 * n_tokens


def _decoder(format):
    """A compiled function that decodes one block to every eighth place; ``formats.decode``."""
    unpack, block = UNPACK[format.name], format.block
    width = block // format.n_sub if format.n_sub else block
    has_m, has_mins = "m" in format.dtype.names, "dmin" in format.dtype.names
    has_scales = format.n_sub > 0

    @inner
    def decode(raw, at, b, values, lane):
        unpack(raw, at, b)
        d, low = b.head[0], b.head[1]
        for sub in range(block // width):
            scale = d * float32(b.scales[sub]) if has_scales else d
            minimum = low * float32(b.mins[sub]) if has_mins else float32(0)
            for e in range(sub * width, (sub + 1) * width):
                value = float32(b.codes[e]) * scale
                if has_m:
                    value += low
                if has_mins:
                    value -= minimum
                values[8 * e + lane] = value

    return decode


def _accumulate(c, values, y, sums, n_in, start, stop, n_tokens, _stride, _scratch):
    """Add to every token's eight sums the products of elements start … stop."""
    whole = n_tokens & -TOKENS
    for first, last, n in ((0, whole, TOKENS), (whole, n_tokens, 1)):
        with c.loop(first, last, n) as t:
            places = [sums + (t + i) * 64 for i in range(n)]
            rows = [y + (t + i) * n_in * 4 for i in range(n)]
            totals = [c.variable(c.load(F64x8, place)) for place in places]
            with c.loop(start, stop) as k:
                w = c.load(F32x8, values + (k - start) * 32).to(F64x8)
                for total, row in zip(totals, rows, strict=True):
                    total.add(w * c.fill(c.load(F32, row + k * 4), 8).to(F64x8))
            for total, place in zip(totals, places, strict=True):
                c.store(total.get(), place)


def _finish(c, _w, _y, out, _n, row0, _row1, n_tokens, out_stride, sums):
    """Round the eight sums of every token to float32."""
    with c.loop(0, n_tokens) as t:
        total = c.load(F64x8, sums + t * 64)
        c.store(total.to(F32x8), out + (t * out_stride + row0) * 4)


def products(format):
    """The compiled ``matmat`` of a `Format` whose decoded weights meet float32 numbers."""
    decode, block, block_bytes = _decoder(format), format.block, format.nbytes
    accumulate, finish = kernel(_accumulate), kernel(_finish)

    @inner
    def matmat(w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        row_bytes = n_in // block * block_bytes
        b, values = block_at(scratch + BLOCK_AT), f32_at(scratch + VALUES_AT, 2048)
        sums = scratch + SUMS_AT
        for row in range(row0, row1, 8):
            f32_at(sums, 16 * n_tokens)[:] = 0  # all bytes 0
            for i in range(n_in // block):
                for lane in range(8):
                    raw = u8_at(w + (row + lane) * row_bytes, row_bytes)
                    decode(raw, i * block_bytes, b, values, lane)
                start = i * block
                accumulate(scratch + VALUES_AT, y, sums, n_in, start, start + block, n_tokens, 0, 0)
            finish(0, 0, out, 0, row, row, n_tokens, out_stride, sums)

    return matmat
