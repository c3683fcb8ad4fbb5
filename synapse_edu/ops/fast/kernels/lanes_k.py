"""K formats: the eight sums of llama.cpp's portable code are the eight lanes of a register.

The portable code adds element e of a block of 256 to sum e % 8.  Here four codes of each sum stand
in each 32-bit lane (`layout` gives the order), so one multiplication of bytes and one of int16
pairs by the sub-blocks' scales leave all eight sums of a row in place.  A block of eight rows is
packed together; what follows the scales depends on the format::

    Q4_K  d, dmin float16 (8,) each; the twelve scale bytes of eight rows, in words of four;
          codes (quad of rows 2, t 4, row 4) × 32 bytes: low nibbles are h = 0, high ones h = 1
    Q5_K  the same, with the fifth bits (row 8) × 32 bytes before the codes: bit 2·t + h
    Q6_K  d float16 (8,); scales int8 (t·h 8, row 8, s 2); codes (quad of rows 2, t·h 8) × 96 bytes:
          three registers that hold the six bits of four rows
    Q3_K  d, scales the same; high bits (row 8) × 32 bytes: bit 2·t + h; low bits (quad 2, half 2,
          row 4) × 32 bytes: two bits each of t·h = 4·half + 0 … 3

ggml-cpu/quants.c: ``ggml_vec_dot_q4_K_q8_K_generic`` and its siblings.  A block of a row adds one
rounded term to each of its eight sums; the minima take one term off a ninth, in block order.
"""

from dataclasses import dataclass

import numpy as np
from numba import uint8

from ....formats.layout import FORMATS
from ..jit import inner, njit
from ..memory import u8_at
from ..registers import F32x8, I8x16, I8x32, I16x16, I32x8
from .unpack import BLOCK_BYTES, UNPACK, block_at

SUMS = 9 * 32  # bytes of sums of eight rows and one token: rows of eight lanes, then the ninth


@dataclass(frozen=True)
class Spec:
    """What one format needs beyond the shared kernel."""

    name: str
    bits: int
    minima: bool
    offset: int = 0  # what is taken off a stored code

    @property
    def layout(self):
        return self.name

    @property
    def scales_at(self):
        return 32 if self.minima else 16

    @property
    def high_at(self):
        return self.scales_at + (96 if self.minima else 128)

    @property
    def codes_at(self):
        return self.high_at + (256 if self.bits in (5, 3) else 0)

    @property
    def nbytes(self):
        """Bytes of one block of eight rows."""
        return self.codes_at + {3: 512, 4: 1024, 5: 1024, 6: 1536}[self.bits]


SPECS = {
    "Q3_K": Spec("Q3_K", 3, False, offset=4),
    "Q4_K": Spec("Q4_K", 4, True),
    "Q5_K": Spec("Q5_K", 5, True),
    "Q6_K": Spec("Q6_K", 6, False, offset=32),
}


def packed_bytes(spec, n_rows, n_in):
    return n_rows // 8 * (n_in // 256) * spec.nbytes


# --- registers of codes ------------------------------------------------------------------------
# Each function gives, for four rows, the registers h = 0 and h = 1 of one t, as stored (unsigned).
def _nibble_codes(c, spec, w, quad, t):
    """Codes 0 to 15, or 0 to 31 with the fifth bit."""
    rows = []
    for r in range(4):
        x = c.load(I8x32, w + quad * 512, spec.codes_at + 128 * t + 32 * r)
        codes = [x & 15, (x.as_(I16x16) >> 4).as_(I8x32) & 15]
        if spec.bits == 5:
            high = c.load(I16x16, w + quad * 128, spec.high_at + 32 * r)
            for h in range(2):
                n = 4 - (2 * t + h)  # places up to bit 4
                moved = high << n if n >= 0 else high >> -n
                codes[h] = codes[h] | (moved.as_(I8x32) & 16)
        rows.append(codes)
    return rows


def _three_bit_codes(c, spec, w, quad, t):
    """Codes 0 to 7."""
    rows = []
    for r in range(4):
        high, codes = c.load(I16x16, w + quad * 128, spec.high_at + 32 * r), []
        low = c.load(I16x16, w + quad * 256, spec.codes_at + 128 * (t // 2) + 32 * r)
        for k in (2 * t, 2 * t + 1):
            top = high << (2 - k) if k < 2 else high >> (k - 2)
            codes.append(((low >> 2 * (k % 4)).as_(I8x32) & 3) | (top.as_(I8x32) & 4))
        rows.append(codes)
    return rows


def _six_bit_codes(c, spec, w, quad, t):
    """Codes 0 to 63: the fourth row's are spread over the two upper bits of the other three's."""

    def top(x, n):
        return ((x & 0xC0).as_(I16x16) >> n).as_(I8x32)

    registers = []
    for h in range(2):
        at = spec.codes_at + (2 * t + h) * 96
        a, b, d = (c.load(I8x32, w + quad * 768, at + 32 * i) for i in range(3))
        registers.append([a & 63, b & 63, d & 63, top(a, 6) | top(b, 4) | top(d, 2)])
    return list(zip(*registers, strict=True))


def quad_codes(c, spec, w, quad, t):
    """Registers h = 0, 1 of one t, for the four rows of a quad: a list of four pairs."""
    unpack = {3: _three_bit_codes, 6: _six_bit_codes}.get(spec.bits, _nibble_codes)
    return unpack(c, spec, w, quad, t)


# --- scales ------------------------------------------------------------------------------------
def _six_bit_scales(c, spec, w):
    """Scales and minima as pairs (2·t, 2·t + 1), one row a lane: four registers of each."""
    first, second, third = (c.load(I32x8, w, spec.scales_at + 32 * i) for i in range(3))
    low, four, two = 0x3F3F3F3F, 0x0F0F0F0F, 0x03030303
    scales = [first & low, (third & four) | (((first >> 6) & two) << 4)]
    minima = [second & low, ((third >> 4) & four) | (((second >> 6) & two) << 4)]

    def pairs(words):
        return [c.byte_pairs(x, first) for x in words for first in (0, 2)]

    return pairs(scales), pairs(minima)


def store_scales(c, spec, w, place):
    """Each register's scales as int16 pairs (s 0, s 1), one row a lane, to `place`.

    Returns the registers of minima, if any.
    """
    if spec.minima:
        scales, minima = _six_bit_scales(c, spec, w)
    else:
        scales = [c.load(I8x16, w, spec.scales_at + 16 * k).to(I16x16) for k in range(8)]
        minima = []
    for k, pair in enumerate(scales):
        c.store(pair, place, 32 * k, align=32)
    return minima


def minimum_term(c, w, minima, sums_at, yd):
    """What the minima take off: (dmin · yd) · sum of minimum · activation sums, one row a lane."""
    total = None
    for t, pair in enumerate(minima):
        part = c.dot_pairs(pair, c.load_pair(sums_at, 4 * t))
        total = part if total is None else total + part
    return (c.halves(w, 16) * yd) * total.to(F32x8)


# --- sums --------------------------------------------------------------------------------------
def zero_sums(c, sums, n=8):
    for r in range(n):
        c.store(c.constant(F32x8, 0), sums, 32 * r)


def add_to_sums(c, place, total, d_at):
    """The eight sums of one row, at `place`, plus (d · yd) · their integers; d · yd at `d_at`."""
    term = c.load_fill(F32x8, d_at) * total.to(F32x8)
    c.store(c.load(F32x8, place) + term, place)


def finish_rows(c, sums, ninth):
    """The ninth sum of eight rows, plus their sums 0 to 7 in order: one row a lane."""
    lanes = c.transpose([c.load(F32x8, sums, 32 * r) for r in range(8)])
    for lane in lanes:
        ninth = ninth + lane
    return ninth


# --- packing -----------------------------------------------------------------------------------
@inner
def in_lanes(codes, offset, q):
    """Codes made unsigned and put in the order of the activations (`layout`)."""
    for t in range(4):
        for s in range(2):
            for h in range(2):
                for p in range(2):
                    source, place = 64 * t + 32 * s + 16 * h + 8 * p, 64 * t + 32 * h + 2 * s + p
                    for lane in range(8):
                        q[place + 4 * lane] = uint8(codes[source + lane] + offset)


@inner
def _pack_nibbles(q, target, row, codes_at, high_at):
    """Q4_K, Q5_K: codes of one row; the fifth bits where `high_at` is not 0."""
    at = codes_at + 512 * (row >> 2) + 32 * (row & 3)
    for t in range(4):
        for j in range(32):
            both = q[64 * t + j] & 15 | (q[64 * t + 32 + j] & 15) << 4
            target[at + 128 * t + j] = both
    if high_at:
        _pack_high_bits(q, target, high_at + 32 * row, 4)


@inner
def _pack_high_bits(q, target, at, n):
    """Bit `n` of register k's codes becomes bit k of one byte."""
    for j in range(32):
        bits = uint8(0)
        for k in range(8):
            bits |= (q[32 * k + j] >> n & 1) << k
        target[at + j] = bits


@inner
def pack_low_bits(q, target, at):
    """The two lowest bits of four registers in each byte; the two halves 128 bytes apart."""
    for half in range(2):
        for j in range(32):
            bits = uint8(0)
            for k in range(4):
                bits |= (q[128 * half + 32 * k + j] & 3) << 2 * k
            target[at + 128 * half + j] = bits


@inner
def _pack_three_bits(q, target, row, codes_at, high_at):
    pack_low_bits(q, target, codes_at + 256 * (row >> 2) + 32 * (row & 3))
    _pack_high_bits(q, target, high_at + 32 * row, 2)


@inner
def _pack_six_bits(q, target, row, codes_at, high_at):
    for k in range(8):
        at = codes_at + ((row >> 2) * 8 + k) * 96
        for j in range(32):
            if row & 3 < 3:
                target[at + 32 * (row & 3) + j] |= q[32 * k + j]
            else:
                for i in range(3):
                    target[at + 32 * i + j] |= (q[32 * k + j] >> 2 * i & 3) << 6


@inner
def _pack_six_bit_scales(source, at, b, target, row):
    """The twelve bytes as they are, in words of four."""
    for j in range(12):
        target[32 + 32 * (j // 4) + 4 * row + j % 4] = source[at + 4 + j]


@inner
def _pack_byte_scales(source, at, b, target, row):
    """Sub-block 4·t + 2·s + h goes to register 2·t + h."""
    for j in range(16):
        k, s = (j >> 2) * 2 + (j & 1), j >> 1 & 1
        target[16 + 16 * k + 2 * row + s] = uint8(b.scales[j])


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix."""
    unpack, row_block = UNPACK[spec.name], FORMATS[spec.name].nbytes
    d_at = tuple(FORMATS[spec.name].dtype.fields[f][1] for f in ("d", "dmin")[: 1 + spec.minima])
    pack_codes = {3: _pack_three_bits, 6: _pack_six_bits}.get(spec.bits, _pack_nibbles)
    pack_scales = _pack_six_bit_scales if spec.minima else _pack_byte_scales
    nbytes, codes_at, offset = spec.nbytes, spec.codes_at, spec.offset
    high_at = spec.high_at if spec.bits in (3, 5) else 0

    def pack(raw, out, n_out, n_rows, n_in):
        n_block, q = n_in // 256, np.empty(256, np.uint8)
        room = np.empty(BLOCK_BYTES, np.uint8)
        b = block_at(room.ctypes.data)
        for group in range(n_rows // 8):
            for i in range(n_block):
                target = u8_at(out + (group * n_block + i) * nbytes, nbytes)
                target[:] = 0
                for row in range(8):
                    if 8 * group + row >= n_out:
                        break
                    at = ((8 * group + row) * n_block + i) * row_block
                    source = u8_at(raw + at, row_block)
                    unpack(source, 0, b)
                    for half, start in enumerate(d_at):
                        target[16 * half + 2 * row] = source[start]
                        target[16 * half + 2 * row + 1] = source[start + 1]
                    pack_scales(source, 0, b, target, row)
                    in_lanes(b.codes, offset, q)
                    pack_codes(q, target, row, codes_at, high_at)

    return njit(pack, tag=spec.name)
