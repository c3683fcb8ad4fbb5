"""K formats, many tokens: a block is unpacked once, then met by tiles of four rows and two tokens.

Formats whose stored codes are shifted are unpacked to signed codes; their activations are shifted
instead, by 128, to meet them as unsigned bytes, and what that adds, 128 · scale · code, is one
correction a block and row, from which the integer sums start.
"""

from ..registers import F32x8, I8x32, I16x16, I32x8
from . import lanes_k_one
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

TILE = 64  # tokens whose sums and activations of one block stay in the first cache
CODES_AT = 64  # in scratch: codes (t·h 8, row 8) × 32 bytes
SCALES_AT = CODES_AT + 2048
MINIMA_AT = SCALES_AT + 256
CORRECTION_AT = MINIMA_AT + 128  # int32 (row 8, lane 8)
D_AT = CORRECTION_AT + 256  # d · yd of eight rows, for two tokens
SUMS_AT = D_AT + 64


def scratch_bytes(spec, n_in, n_tokens):
    return max(SUMS_AT + SUMS * min(TILE, n_tokens), lanes_k_one.scratch_bytes(spec, n_in))


def _unpack(c, spec, block, scratch):
    """Codes and scales of eight rows → scratch."""
    codes_at, scales = scratch + CODES_AT, scratch + SCALES_AT
    for t, pair in enumerate(store_scales(c, spec, block, scales)):
        c.store(pair, scratch, MINIMA_AT + 32 * t)
    with c.loop(0, 2) as quad:
        for t in range(4):
            for r, pair in enumerate(quad_codes(c, spec, block, quad, t)):
                for h, codes in enumerate(pair):
                    at = 256 * (2 * t + h) + 32 * r
                    c.store(codes - spec.offset, codes_at + quad * 128, at)
    if spec.offset:
        _correct(c, codes_at, scales, scratch + CORRECTION_AT)


def _correct(c, codes_at, scales, place):
    """-128 · the sum of scale · code, for each row and lane."""
    by_128 = c.constant(I8x32, -128)  # the byte of 128
    with c.loop(0, 8) as row:
        total = c.constant(I32x8, 0)
        for k in range(8):
            pairs = c.dot_bytes(by_128, c.load(I8x32, codes_at + row * 32, 256 * k))
            total = total - c.dot_pairs(pairs, c.load_pair(scales + row * 4, 32 * k))
        c.store(total, place + row * 32)


def _products(c, spec, codes, scales, activations, totals):
    """Add to the sums of four rows and some tokens what registers 2·t and 2·t + 1 give."""
    for r in range(4):
        row = [c.load(I8x32, codes, 256 * h + 32 * r) for h in range(2)]
        for n, y in enumerate(activations):
            if spec.minima:
                pairs = c.dot_bytes(row[0], y[0]) + c.dot_bytes(row[1], y[1])
                part = c.dot_pairs(pairs, c.load_pair(scales, 4 * r))
            else:
                part = None
                for h in range(2):
                    pairs = c.dot_bytes(y[h], row[h])
                    more = c.dot_pairs(pairs, c.load_pair(scales, 32 * h + 4 * r))
                    part = more if part is None else part + more
            totals[4 * n + r].add(part)


def _half_of_rows(c, spec, y, half, n, scratch, sums):
    """Four rows of the block meet `n` tokens."""
    start = c.constant(I32x8, 0)
    correction = scratch + CORRECTION_AT + half * 128
    starts = [c.load(I32x8, correction, 32 * r) if spec.offset else start for r in range(4)]
    totals = [c.variable(starts[r]) for _ in range(n) for r in range(4)]
    step = 32 if spec.minima else 64  # bytes of scales for two registers
    with c.loop(0, 4) as t:
        activations = [
            [c.load(I8x32, y + t * 64, 256 * i + 32 * h) for h in range(2)] for i in range(n)
        ]
        if spec.offset:
            activations = [[a ^ -128 for a in pair] for pair in activations]
        codes = scratch + CODES_AT + t * 512 + half * 128
        scales = scratch + SCALES_AT + t * step + half * 16
        _products(c, spec, codes, scales, activations, totals)
    for i in range(n):
        for r in range(4):
            place, d = sums + SUMS * i + half * 128 + 32 * r, scratch + D_AT + half * 16
            add_to_sums(c, place, totals[4 * i + r].get(), d + (32 * i + 4 * r))


def _tokens(c, spec, block, y, at, n, scratch, sums, places):
    """The unpacked block meets tokens at, at + 1, … (`n` of them)."""
    d_at, sums_at = places
    d = c.halves(block)
    for i in range(n):
        yd = c.load_fill(F32x8, d_at + (at + i) * 4)
        c.store(d * yd, scratch, D_AT + 32 * i)
        if spec.minima:
            minima = [c.load(I16x16, scratch, MINIMA_AT + 32 * t) for t in range(4)]
            ninth = sums + (SUMS * i + 256)
            term = minimum_term(c, block, minima, sums_at + (at + i) * 16, yd)
            c.store(c.load(F32x8, ninth) - term, ninth)
    with c.loop(0, 2) as half:
        _half_of_rows(c, spec, y + at * 256, half, n, scratch, sums)


def _eight_rows(c, spec, group, y, out, n_in, n_tokens, tokens, out_stride, scratch):
    """All blocks of eight rows meet the tokens of one tile, and the sums are joined."""
    start, stop = tokens
    d_at, sums_at, _ = scales_k_at(y, n_in, n_tokens)
    sums, pairs_end = scratch + SUMS_AT, start + ((stop - start) & -2)
    with c.loop(start, stop) as t:
        zero_sums(c, sums + (t - start) * SUMS, 9)
    with c.loop(0, n_in >> 8) as i:
        block = group + i * spec.nbytes
        _unpack(c, spec, block, scratch)
        for first, last, n in ((start, pairs_end, 2), (pairs_end, stop, 1)):
            with c.loop(first, last, n) as t:
                at, place = i * n_tokens + t, sums + (t - start) * SUMS
                _tokens(c, spec, block, y, at, n, scratch, place, (d_at, sums_at))
    with c.loop(start, stop) as t:
        place = sums + (t - start) * SUMS
        c.store(finish_rows(c, place, c.load(F32x8, place, 256)), out + t * out_stride * 4)


def matmat(spec):
    """What emits the product with many tokens."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * (n_in >> 8) * spec.nbytes
            with c.loop(0, n_tokens, TILE) as start:
                tokens = start, c.minimum(start + TILE, n_tokens)
                place = out + row * 4
                _eight_rows(c, spec, group, y, place, n_in, n_tokens, tokens, out_stride, scratch)

    return emit
