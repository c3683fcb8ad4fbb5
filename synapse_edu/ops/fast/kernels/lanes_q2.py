"""Q2_K: as the other K formats (`lanes_k`), but with one sum a row instead of eight.

A block of eight rows is packed together::

    d, dmin float16 (8,) each; bytes (8, row 8, 2): byte (k, row, s) has in its low nibble the
    scale of register t·h = k, sub-block s, in its high nibble the minimum of sub-block 2·k + s of
    sixteen; codes (quad of rows 2, half 2, row 4) × 32 bytes: two bits each of t·h = 4·half + 0 … 3

ggml-cpu/quants.c: ``ggml_vec_dot_q2_K_q8_K_generic``.
"""

from dataclasses import dataclass

import numpy as np

from ..jit import inner, njit
from ..memory import u8_at
from ..registers import F32x8, I8x16, I8x32, I16x16, I32x8
from .lanes_k import in_lanes, pack_low_bits
from .layout import scales_k_at
from .unpack import BLOCK_BYTES, block_at, q2_k

BLOCK, FILE_BLOCK = 672, 84  # bytes of eight rows' block, of a row's block in the file
CODES_AT = 64  # in scratch: codes (t·h 8, row 8) × 32 bytes, scales, minima, the lanes' totals
SCALES_AT = CODES_AT + 2048
MINIMA_AT = SCALES_AT + 256
TOTALS_AT = MINIMA_AT + 256
SUMS_AT = TOTALS_AT + 256


@dataclass(frozen=True)
class Spec:
    layout: str = "Q2_K"


SPECS = {"Q2_K": Spec()}
matvec = None  # `matmat` serves a single token as well


def packed_bytes(spec, n_rows, n_in):
    return n_rows // 8 * (n_in // 256) * BLOCK


def scratch_bytes(spec, n_in, n_tokens):
    return SUMS_AT + 32 * n_tokens


@inner
def _pack_row(source, target, row, b, q):
    q2_k(source, 0, b)
    for j in range(4):
        target[16 * (j >> 1) + 2 * row + (j & 1)] = source[80 + j]
    for k in range(8):
        for s in range(2):
            scale, minimum = b.scales[4 * (k >> 1) + 2 * s + (k & 1)], b.mins[2 * k + s]
            target[32 + 16 * k + 2 * row + s] = scale | minimum << 4
    in_lanes(b.codes, 0, q)
    pack_low_bits(q, target, 160 + 256 * (row >> 2) + 32 * (row & 3))


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix."""

    def pack(raw, out, n_out, n_rows, n_in):
        n_block, q, room = n_in // 256, np.empty(256, np.uint8), np.empty(BLOCK_BYTES, np.uint8)
        b = block_at(room.ctypes.data)
        u8_at(out + ((n_rows - 1) // 8) * n_block * BLOCK, n_block * BLOCK)[:] = 0
        for row in range(n_out):
            for i in range(n_block):
                source = u8_at(raw + (row * n_block + i) * FILE_BLOCK, FILE_BLOCK)
                target = u8_at(out + ((row // 8) * n_block + i) * BLOCK, BLOCK)
                _pack_row(source, target, row % 8, b, q)

    return njit(pack)


def _unpack(c, block, scratch):
    """Codes, scales and minima of eight rows → scratch."""
    for k in range(8):
        both = c.load(I8x16, block, 32 + 16 * k).unsigned(I16x16)
        c.store(both & 15, scratch, SCALES_AT + 32 * k)
        c.store(both >> 4, scratch, MINIMA_AT + 32 * k)
    with c.loop(0, 2) as quad:
        for half in range(2):
            for r in range(4):
                packed = c.load(I16x16, block + quad * 256, 160 + 128 * half + 32 * r)
                for k in range(4):
                    codes = (packed >> 2 * k).as_(I8x32) & 3
                    at = CODES_AT + 256 * (4 * half + k) + 32 * r
                    c.store(codes, scratch + quad * 128, at)


def _integer_dot(c, y, scratch):
    """Exact sums of scale · code · activation: int32 × 8, a lane a row."""
    with c.loop(0, 2) as quad:
        codes, scales = scratch + quad * 128, scratch + quad * 16
        totals = [c.constant(I32x8, 0)] * 4
        for k in range(8):
            activations = c.load(I8x32, y, 32 * k)
            for r in range(4):
                row = c.load(I8x32, codes, CODES_AT + 256 * k + 32 * r)
                pair = c.load_pair(scales, SCALES_AT + 32 * k + 4 * r)
                totals[r] = totals[r] + c.dot_pairs(c.dot_bytes(row, activations), pair)
        for r, total in enumerate(totals):
            c.store(total, scratch + quad * 128, TOTALS_AT + 32 * r)
    lanes = c.transpose([c.load(I32x8, scratch, TOTALS_AT + 32 * r) for r in range(8)])
    return sum(lanes[1:], lanes[0])


def _minimum_sum(c, scratch, sums_at):
    """Exact sums of minimum · activation sum, a lane a row."""
    total = c.constant(I32x8, 0)
    for k in range(8):
        pair = c.load(I16x16, scratch, MINIMA_AT + 32 * k)
        total = total + c.dot_pairs(pair, c.load_pair(sums_at, 4 * k))
    return total


def _token(c, block, y, yd, sums_at, scratch, place):
    """One block of eight rows meets one token: (yd·d)·isum - (yd·dmin)·msum is added."""
    total, minima = _integer_dot(c, y, scratch), _minimum_sum(c, scratch, sums_at)
    term = (yd * c.halves(block)) * total.to(F32x8)
    term = term - (yd * c.halves(block, 16)) * minima.to(F32x8)
    c.store(c.load(F32x8, place) + term, place)


def matmat(spec):
    """What emits the product: each block is unpacked once for all tokens."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block, sums = n_in >> 8, scratch + SUMS_AT
        d_at, _, sums_at = scales_k_at(y, n_in, n_tokens)
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * BLOCK
            with c.loop(0, n_tokens) as t:
                c.store(c.constant(F32x8, 0), sums + t * 32)
            with c.loop(0, n_block) as i:
                block = group + i * BLOCK
                _unpack(c, block, scratch)
                with c.loop(0, n_tokens) as t:
                    at = i * n_tokens + t
                    yd, activations = c.load_fill(F32x8, d_at + at * 4), y + at * 256
                    place = sums + t * 32
                    _token(c, block, activations, yd, sums_at + at * 32, scratch, place)
            with c.loop(0, n_tokens) as t:
                c.store(c.load(F32x8, sums + t * 32), out + (t * out_stride + row) * 4)

    return emit
