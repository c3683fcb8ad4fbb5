"""Formats of 32 elements with one scale: eight rows side by side in a register.

A register of 32 bytes holds four neighbouring codes of each of eight rows, so the four activations
that they meet are one load that fills all lanes, and a row's integer sum stays in its lane.  Eight
rows of one block are packed together, in the order in which they are read::

    d float16 (8,)   m float16 (8,) where the format has it
    fifth bits (8, 4) bytes: bit v of byte c is that of element 4·v + c
    words (4, 8, 4) bytes: low nibbles are elements 0 to 15, high nibbles 16 to 31;
        or codes int8 (8, 8, 4) of Q8_0

One rounded term a block is added in order: ggml-cpu/quants.c, ``ggml_vec_dot_q4_0_q8_0_generic``,
``…_q4_1_q8_1_generic``, ``…_q5_0_q8_0_generic``, ``…_q5_1_q8_1_generic``, ``…_q8_0_q8_0_generic``.
"""

from dataclasses import dataclass

from ..jit import njit
from ..memory import u8_at
from ..simd import F32x8, I8x32, I16x16, I32x8


@dataclass(frozen=True)
class Spec:
    """What one format needs beyond the shared kernel."""

    bits: int
    shift: int = 0  # what is taken off a code: its sum over the activations comes off the product
    has_m: bool = False
    scales_last: bool = False  # Q4_0 multiplies the sum by one scale after the other

    @property
    def fifth_at(self):
        return 32 if self.has_m else 16

    @property
    def words_at(self):
        return self.fifth_at + (32 if self.bits == 5 else 0)

    @property
    def nbytes(self):
        """Bytes of one block of eight rows."""
        return self.words_at + (256 if self.bits == 8 else 128)


SPECS = {
    "Q4_0": Spec(4, shift=8, scales_last=True),
    "Q4_1": Spec(4, has_m=True),
    "Q5_0": Spec(5, shift=16),
    "Q5_1": Spec(5, has_m=True),
    "Q8_0": Spec(8),
}


def packed_bytes(spec, n_rows, n_in):
    return n_rows // 8 * (n_in // 32) * spec.nbytes


def scratch_bytes(spec, n_in, n_tokens):
    """Bytes of scratch: the counter, the sums of eight rows for every token."""
    return 64 + 32 * n_tokens


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix."""
    n_head = 4 if spec.has_m else 2
    qs_at = n_head + (4 if spec.bits == 5 else 0)
    row_block = qs_at + (32 if spec.bits == 8 else 16)
    n_words, five = 8 if spec.bits == 8 else 4, spec.bits == 5
    fifth_at, words_at, nbytes = spec.fifth_at, spec.words_at, spec.nbytes

    def pack(raw, out, n_out, n_rows, n_in):
        n_block = n_in // 32
        for row in range(n_rows):
            lane = row % 8
            for i in range(n_block):
                target = u8_at(out + ((row // 8) * n_block + i) * nbytes, nbytes)
                source = u8_at(raw + (min(row, n_out - 1) * n_block + i) * row_block, row_block)
                for h in range(n_head):
                    # a row of padding has scales 0
                    byte = source[h] if row < n_out else 0
                    target[(h // 2) * 16 + 2 * lane + h % 2] = byte
                if five:
                    for c in range(4):
                        bits = 0
                        for v in range(8):
                            e = 4 * v + c
                            bits |= (source[n_head + e // 8] >> e % 8 & 1) << v
                        target[fifth_at + 4 * lane + c] = bits
                for j in range(n_words):
                    for c in range(4):
                        target[words_at + 32 * j + 4 * lane + c] = source[qs_at + 4 * j + c]

    return njit(pack, tag=repr(spec))


def _codes(c, spec, w):
    """Eight registers of codes: register v holds elements 4·v to 4·v + 3 of eight rows."""
    if spec.bits == 8:
        return [c.load(I8x32, w, spec.words_at + 32 * v) for v in range(8)]
    words = [c.load(I8x32, w, spec.words_at + 32 * j) for j in range(4)]
    codes = [x & 15 for x in words] + [(x.as_(I16x16) >> 4).as_(I8x32) & 15 for x in words]
    if spec.bits == 5:
        high = c.load(I16x16, w, spec.fifth_at)
        for v in range(8):
            moved = high << (4 - v) if v < 4 else high >> (v - 4)
            codes[v] = codes[v] | (moved.as_(I8x32) & 16)
    return codes


def _integer_dot(c, spec, codes, y):
    """Exact sums over 32 elements: int32 × 8, a lane a row.

    An int16 holds all products of 4-bit codes (16 · 15 · 127 = 30 480), half of those of 5-bit
    codes, and two of 8-bit codes.
    """
    at_once = {4: 8, 5: 4, 8: 1}[spec.bits]
    total = None
    for first in range(0, 8, at_once):
        pairs = None
        for v in range(first, first + at_once):
            four = c.load_four(y, 4 * v)
            dot = c.dot_signed(codes[v], four) if spec.bits == 8 else c.dot_bytes(codes[v], four)
            pairs = dot if pairs is None else pairs + dot
        part = c.add_pairs(pairs)
        total = part if total is None else total + part
    return total


def _term(c, spec, w, codes, y, d_at, s_at):
    """The float32 term that one block adds to a row."""
    total = _integer_dot(c, spec, codes, y)
    if spec.shift:
        total = total - c.load_fill(I32x8, s_at) * spec.shift
    d, yd = c.halves(w), c.load_fill(F32x8, d_at)
    if spec.scales_last:
        return (total.to(F32x8) * d) * yd
    term = (d * yd) * total.to(F32x8)
    return term + c.halves(w, 16) * c.load_fill(F32x8, s_at) if spec.has_m else term


def matvec(spec):
    """What emits the product with one token."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block = n_in >> 5
        d_at = y + n_in
        s_at = d_at + n_block * 4
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * spec.nbytes
            sums = c.variable(c.constant(F32x8, 0))
            with c.loop(0, n_block) as i:
                block = group + i * spec.nbytes
                codes = _codes(c, spec, block)
                sums.add(_term(c, spec, block, codes, y + i * 32, d_at + i * 4, s_at + i * 4))
            c.store(sums.get(), out + row * 4)

    return emit


def matmat(spec):
    """What emits the product with many tokens: each block is unpacked once for all of them."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block = n_in >> 5
        d_at = y + n_in * n_tokens
        s_at = d_at + n_block * n_tokens * 4
        sums = scratch + 64
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * spec.nbytes
            with c.loop(0, n_tokens) as t:
                c.store(c.constant(F32x8, 0), sums + t * 32)
            with c.loop(0, n_block) as i:
                block = group + i * spec.nbytes
                codes = _codes(c, spec, block)
                with c.loop(0, n_tokens) as t:
                    at = i * n_tokens + t
                    places = y + at * 32, d_at + at * 4, s_at + at * 4
                    place = sums + t * 32
                    term = _term(c, spec, block, codes, *places)
                    c.store(c.load(F32x8, place) + term, place)
            with c.loop(0, n_tokens) as t:
                c.store(c.load(F32x8, sums + t * 32), out + (t * out_stride + row) * 4)

    return emit
