"""K formats, one token: each row's registers are taken apart and multiplied at once."""

from ..registers import F32x8, I8x32, I16x16
from .lanes_k import (
    SUMS,
    add_to_sums,
    finish_rows,
    minimum_term,
    quad_codes,
    store_scales,
    zero_sums,
)
from .layout import scales_k_at

SUMS_AT = 64  # in scratch: the sums, the scales of a block, d of eight rows, shifted activations
SCALES_AT = SUMS_AT + SUMS
D_AT = SCALES_AT + 256
SHIFTED_AT = D_AT + 32


def scratch_bytes(spec, n_in):
    return SHIFTED_AT + (n_in if spec.offset else 0)


def _store_shifted(c, spec, y, n_block, place):
    """offset · the sum of each pair of activations: what a pair of shifted codes has too much."""
    with c.loop(0, n_block * 8) as k:
        pairs = c.dot_bytes(c.constant(I8x32, spec.offset), c.load(I8x32, y + k * 32))
        c.store(pairs, place + k * 32)


def _scaled(c, total, pairs, scales, k):
    """total + pairs · the scales of register k, which lie for one row at `scales`."""
    part = c.dot_pairs(pairs, c.load_pair(scales, 32 * k))
    return part if total is None else total + part


def _quad(c, spec, block, quad, y, scales, shifted):
    """The eight exact integer sums of each of four rows."""
    totals = [None] * 4
    for t in range(4):
        registers = 2 * t, 2 * t + 1
        activations = [c.load(I8x32, y, 32 * k) for k in registers]
        for r, codes in enumerate(quad_codes(c, spec, block, quad, t)):
            a, b = (c.dot_bytes(*both) for both in zip(codes, activations, strict=True))
            at = scales + 4 * r
            if spec.minima:  # both registers have the same scales
                totals[r] = _scaled(c, totals[r], a + b, at, t)
            else:
                for k, pairs in zip(registers, (a, b), strict=True):
                    pairs = pairs - c.load(I16x16, shifted, 32 * k)
                    totals[r] = _scaled(c, totals[r], pairs, at, k)
    return totals


def _block(c, spec, block, y, shifted, yd, scratch, sums_at, ninth):
    """One block of eight rows meets one block of activations."""
    scales, d, sums = scratch + SCALES_AT, scratch + D_AT, scratch + SUMS_AT
    minima = store_scales(c, spec, block, scales)
    c.store(c.halves(block) * yd, d)
    if spec.minima:
        ninth.set(ninth.get() - minimum_term(c, block, minima, sums_at, yd))
    with c.loop(0, 2) as quad:
        at = quad * 16
        for r, total in enumerate(_quad(c, spec, block, quad, y, scales + at, shifted)):
            add_to_sums(c, sums + quad * 128 + 32 * r, total, d + at + 4 * r)


def matvec(spec):
    """What emits the product with one token."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block = n_in >> 8
        d_at, sums_at, _ = scales_k_at(y, n_in, 1)
        if spec.offset:
            _store_shifted(c, spec, y, n_block, scratch + SHIFTED_AT)
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * spec.nbytes
            zero_sums(c, scratch + SUMS_AT)
            ninth = c.variable(c.constant(F32x8, 0))
            with c.loop(0, n_block) as i:
                yd, at = c.load_fill(F32x8, d_at + i * 4), i * 256
                block, shifted = group + i * spec.nbytes, scratch + SHIFTED_AT + at
                _block(c, spec, block, y + at, shifted, yd, scratch, sums_at + i * 16, ninth)
            c.store(finish_rows(c, scratch + SUMS_AT, ninth.get()), out + row * 4)

    return emit
