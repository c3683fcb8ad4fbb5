"""Formats of 32 elements with one scale: eight rows side by side in a register.

A register of 32 bytes holds four neighbouring codes of each of eight rows, so the four activations
that they meet are one load that fills all lanes, and a row's integer sum stays in its lane.  Eight
rows of one block are packed together, in the order in which they are read::

    d float16 (8,)   m float16 (8,) where the format has it
    fifth bits (8, 4) bytes: bit v of byte c is that of element 4·v + c
    words (4, 8, 4) bytes: low nibbles are elements 0 to 15, high nibbles 16 to 31;
        or codes int8 (8, 8, 4) of Q8_0

IQ4_NL and MXFP4 have levels for codes; MXFP4's scale is the upper half of a float32.

One rounded term a block is added in order: ggml-cpu/quants.c, ``ggml_vec_dot_q4_0_q8_0_generic``,
``…_q4_1_q8_1_generic``, ``…_q5_0_q8_0_generic``, ``…_q5_1_q8_1_generic``, ``…_q8_0_q8_0_generic``,
``…_iq4_nl_q8_0_generic``, ``…_mxfp4_q8_0_generic``.
"""

from dataclasses import dataclass

import numpy as np
from numba import uint8

from ....formats.layout import FORMATS
from ....formats.unpack import IQ4_LEVELS, MXFP4_LEVELS
from ..half import bits_of
from ..jit import has_avx2, inner, njit
from ..memory import u8_at
from ..registers import I16, I64, F32x8, I8x32, I16x16, I32x8, vector
from .unpack import power_of_two


@dataclass(frozen=True)
class Spec:
    """What one format needs beyond the shared kernel."""

    name: str
    bits: int  # of a packed code
    shift: int = 0  # what is taken off a code: its sum over the activations comes off the product
    scales_last: bool = False  # Q4_0 multiplies the sum by one scale after the other
    table: tuple = ()  # the levels that 4-bit codes stand for
    largest: int = 0  # size of the largest code, where codes are signed

    @property
    def layout(self):
        return f"{self.name}.{self.bits}"

    @property
    def has_m(self):
        return "m" in FORMATS[self.name].dtype.names

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

    @property
    def at_once(self):
        """How many of a block's eight pairs of products an int16 can hold together."""
        most = self.largest or 2**self.bits - 1
        return max(n for n in (1, 2, 4, 8) if n * 2 * most * 127 < 2**15)


# Levels are looked up in a register where there is an instruction for it, else when packing.
LOOK_UP = 4 if has_avx2() else 8
SPECS = {
    spec.name: spec
    for spec in (
        Spec("Q4_0", 4, shift=8, scales_last=True),
        Spec("Q4_1", 4),
        Spec("Q5_0", 5, shift=16),
        Spec("Q5_1", 5),
        Spec("Q8_0", 8, largest=128),
        Spec("IQ4_NL", LOOK_UP, table=tuple(IQ4_LEVELS.tolist()), largest=127),
        Spec("MXFP4", LOOK_UP, table=tuple(MXFP4_LEVELS.tolist()), largest=12),
    )
}


def packed_bytes(spec, n_rows, n_in):
    return n_rows // 8 * (n_in // 32) * spec.nbytes


def scratch_bytes(spec, n_in, n_tokens):
    """Bytes of scratch: the counter, the sums of eight rows for every token."""
    return 64 + 32 * n_tokens


@inner
def pack_head(source, target, lane, n_head):
    """The float16 scales, two bytes of each row."""
    for h in range(n_head):
        target[(h // 2) * 16 + 2 * lane + h % 2] = source[h]


@inner
def _pack_power(source, target, lane, n_head):
    """MXFP4's power of two as the upper half of a float32."""
    bits = bits_of(power_of_two(source[0])) >> 16
    target[2 * lane], target[2 * lane + 1] = bits & 255, bits >> 8


@inner
def pack_words(source, target, words_at, lane, n_words):
    """Codes as they are: words of four bytes."""
    for j in range(n_words):
        for c in range(4):
            target[words_at + 32 * j + 4 * lane + c] = source[4 * j + c]


@inner
def _pack_fifth_bits(source, target, fifth_at, lane):
    for c in range(4):
        bits = 0
        for v in range(8):
            e = 4 * v + c
            bits |= (source[e // 8] >> e % 8 & 1) << v
        target[fifth_at + 4 * lane + c] = bits


@inner
def pack_levels(source, target, words_at, lane, table):
    """4-bit codes looked up: int8 levels."""
    for e in range(16):
        at = words_at + 32 * (e // 4) + 4 * lane + e % 4
        target[at] = uint8(table[source[e] & 15])
        target[at + 128] = uint8(table[source[e] >> 4])


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix.

    A row of padding has codes and scales 0.
    """
    fields, row_block = FORMATS[spec.name].dtype.fields, FORMATS[spec.name].nbytes
    n_head, qs_at = 4 if spec.has_m else 2, fields["qs"][1]
    n_words, five = 8 if spec.name == "Q8_0" else 4, spec.bits == 5
    high_at = fields["qh"][1] if five else 0
    fifth_at, words_at, nbytes = spec.fifth_at, spec.words_at, spec.nbytes
    head = _pack_power if spec.name == "MXFP4" else pack_head
    look_up, table = bool(spec.table) and spec.bits == 8, np.array(spec.table or (0,), np.int8)

    def pack(raw, out, n_out, n_rows, n_in):
        n_block = n_in // 32
        u8_at(out + ((n_rows - 1) // 8) * n_block * nbytes, n_block * nbytes)[:] = 0
        for row in range(n_out):
            lane = row % 8
            for i in range(n_block):
                target = u8_at(out + ((row // 8) * n_block + i) * nbytes, nbytes)
                source = u8_at(raw + (row * n_block + i) * row_block, row_block)
                head(source, target, lane, n_head)
                if five:
                    _pack_fifth_bits(source[high_at:], target, fifth_at, lane)
                if look_up:
                    pack_levels(source[qs_at:], target, words_at, lane, table)
                else:
                    pack_words(source[qs_at:], target, words_at, lane, n_words)

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
    if spec.table:
        table = c.constant(I8x32, list(spec.table) * 2)
        codes = [c.call("llvm.x86.avx2.pshuf.b", I8x32, table, x) for x in codes]
    return codes


def integer_dot(c, spec, codes, y):
    """Exact sums over 32 elements: int32 × 8, a lane a row."""
    dot = c.dot_signed if spec.largest else c.dot_bytes
    total = None
    for first in range(0, 8, spec.at_once):
        pairs = None
        for v in range(first, first + spec.at_once):
            more = dot(codes[v], c.load_four(y, 4 * v))
            pairs = more if pairs is None else pairs + more
        part = c.add_pairs(pairs)
        total = part if total is None else total + part
    return total


def _scale(c, spec, w):
    if spec.name == "MXFP4":
        return (c.load(vector(I16, 8), w).unsigned(I32x8) << 16).as_(F32x8)
    return c.halves(w)


def _term(c, spec, w, codes, sums, y, d_at, s_at):
    """The sums of eight rows after one block: a term rounded to float32 is added."""
    total = integer_dot(c, spec, codes, y)
    if spec.shift:
        total = total - c.load_fill(I32x8, s_at) * spec.shift
    d, yd = _scale(c, spec, w), c.load_fill(F32x8, d_at)
    if spec.scales_last:
        return sums + (total.to(F32x8) * d) * yd
    term = (d * yd) * total.to(F32x8)
    if spec.has_m:
        term = term + c.halves(w, 16) * c.load_fill(F32x8, s_at)
    return sums + term


def _activations(c, spec, y, n_in, n_tokens, scratch):
    """A function from block and token to the addresses of codes, d, and s or the sum."""
    d_at = y + n_in * n_tokens
    s_at = d_at + (n_in >> 5) * n_tokens * 4

    def places(i, t):
        at = i * n_tokens + t
        return y + at * 32, d_at + at * 4, s_at + at * 4

    return places


def matvec(spec, activations=_activations, term=_term):
    """What emits the product with one token."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block, one = n_in >> 5, c.constant(I64, 1)
        places = activations(c, spec, y, n_in, one, scratch)
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * spec.nbytes
            sums = c.variable(c.constant(F32x8, 0))
            with c.loop(0, n_block) as i:
                block = group + i * spec.nbytes
                codes = _codes(c, spec, block)
                sums.set(term(c, spec, block, codes, sums.get(), *places(i, 0)))
            c.store(sums.get(), out + row * 4)

    return emit


def matmat(spec, activations=_activations, term=_term):
    """What emits the product with many tokens: each block is unpacked once for all of them."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block, sums = n_in >> 5, scratch + 64
        places = activations(c, spec, y, n_in, n_tokens, scratch)
        with c.loop(row0, row1, 8) as row:
            group = w + (row >> 3) * n_block * spec.nbytes
            with c.loop(0, n_tokens) as t:
                c.store(c.constant(F32x8, 0), sums + t * 32)
            with c.loop(0, n_block) as i:
                block = group + i * spec.nbytes
                codes = _codes(c, spec, block)
                with c.loop(0, n_tokens) as t:
                    place = sums + t * 32
                    total = c.load(F32x8, place)
                    c.store(term(c, spec, block, codes, total, *places(i, t)), place)
            with c.loop(0, n_tokens) as t:
                c.store(c.load(F32x8, sums + t * 32), out + (t * out_stride + row) * 4)

    return emit
