"""One block of weights taken apart: the compiled twin of ``formats.unpack``.

Every function here is ``unpack(raw, at, b)``: `raw` holds the bytes of a row, `at` is where the
block begins.  It fills the small arrays of `b`, a `Block`: codes int8 (256,), scales and minima
int32 (16,) one for each sub-block, and head float32 (2,): d, and m or dmin.
"""

from collections import namedtuple

from numba import int8, int32, uint16, uint32

from ....formats.unpack import IQ4_LEVELS, MXFP4_LEVELS
from ..half import float_of, half_to_float
from ..jit import inner
from ..memory import f32_at, i8_at, i32_at

BLOCK_BYTES = 448
Block = namedtuple("Block", "codes scales mins head")


@inner
def block_at(address):
    """A `Block` in the `BLOCK_BYTES` at an address."""
    return Block(
        i8_at(address, 256),
        i32_at(address + 256, 16),
        i32_at(address + 320, 16),
        f32_at(address + 384, 2),
    )


@inner
def _half(raw, at):
    return half_to_float(uint16(uint16(raw[at]) | uint16(raw[at + 1]) << 8))


@inner
def _word(raw, at):
    return uint32(raw[at] | raw[at + 1] << 8 | raw[at + 2] << 16 | raw[at + 3] << 24)


@inner
def _nibbles(raw, at, codes, shift):
    """Sixteen bytes: low nibbles are elements 0 to 15, high nibbles 16 to 31, less `shift`."""
    for j in range(16):
        codes[j] = int8((raw[at + j] & 15) - shift)
        codes[16 + j] = int8((raw[at + j] >> 4) - shift)


@inner
def _five_bits(raw, qh, qs, codes, shift):
    """As `_nibbles`, and bit j of the word at `qh` is the fifth bit of element j."""
    high = _word(raw, qh)
    for j in range(16):
        codes[j] = int8((raw[qs + j] & 15 | (high >> j & 1) << 4) - shift)
        codes[16 + j] = int8((raw[qs + j] >> 4 | (high >> (j + 16) & 1) << 4) - shift)


@inner
def q4_0(raw, at, b):
    b.head[0] = _half(raw, at)
    _nibbles(raw, at + 2, b.codes, 8)


@inner
def q4_1(raw, at, b):
    b.head[0], b.head[1] = _half(raw, at), _half(raw, at + 2)
    _nibbles(raw, at + 4, b.codes, 0)


@inner
def q5_0(raw, at, b):
    b.head[0] = _half(raw, at)
    _five_bits(raw, at + 2, at + 6, b.codes, 16)


@inner
def q5_1(raw, at, b):
    b.head[0], b.head[1] = _half(raw, at), _half(raw, at + 2)
    _five_bits(raw, at + 4, at + 8, b.codes, 0)


@inner
def q8_0(raw, at, b):
    b.head[0] = _half(raw, at)
    for j in range(32):
        b.codes[j] = int8(raw[at + 2 + j])


@inner
def iq4_nl(raw, at, b):
    b.head[0] = _half(raw, at)
    for j in range(16):
        b.codes[j] = IQ4_LEVELS[raw[at + 2 + j] & 15]
        b.codes[16 + j] = IQ4_LEVELS[raw[at + 2 + j] >> 4]


@inner
def power_of_two(e):
    """2^(e-128) for a byte e: half of the power of two that MXFP4 stores."""
    if e < 2:  # subnormal
        return float_of(uint32(0x200000 << e))
    return float_of(uint32((e - 1) << 23))


@inner
def mxfp4(raw, at, b):
    b.head[0] = power_of_two(raw[at])
    for j in range(16):
        b.codes[j] = MXFP4_LEVELS[raw[at + 1 + j] & 15]
        b.codes[16 + j] = MXFP4_LEVELS[raw[at + 1 + j] >> 4]


@inner
def _two_bits(raw, at, codes):
    """Byte l of a half holds elements l, l+32, l+64 and l+96 of 128."""
    for half in range(2):
        for k in range(4):
            for j in range(32):
                codes[128 * half + 32 * k + j] = int8(raw[at + 32 * half + j] >> 2 * k & 3)


@inner
def q2_k(raw, at, b):
    b.head[0], b.head[1] = _half(raw, at + 80), _half(raw, at + 82)
    for j in range(16):
        b.scales[j], b.mins[j] = int32(raw[at + j] & 15), int32(raw[at + j] >> 4)
    _two_bits(raw, at + 16, b.codes)


@inner
def q3_k(raw, at, b):
    b.head[0] = _half(raw, at + 108)
    for j in range(16):
        low = raw[at + 96 + (j & 7)] >> (j >> 3) * 4 & 15
        high = raw[at + 104 + (j & 3)] >> (j >> 2) * 2 & 3
        b.scales[j] = int32(low | high << 4) - int32(32)
    _two_bits(raw, at + 32, b.codes)
    for k in range(8):
        for j in range(32):
            b.codes[32 * k + j] += int8((raw[at + j] >> k & 1) * 4) - int8(4)


@inner
def _six_bit_scales(raw, at, b):
    """Eight scales and minima of six bits from twelve bytes (``formats.unpack``)."""
    for j in range(4):
        first, second, third = raw[at + j], raw[at + 4 + j], raw[at + 8 + j]
        b.scales[j], b.mins[j] = int32(first & 63), int32(second & 63)
        b.scales[4 + j] = int32(third & 15 | first >> 6 << 4)
        b.mins[4 + j] = int32(third >> 4 | second >> 6 << 4)


@inner
def q4_k(raw, at, b):
    b.head[0], b.head[1] = _half(raw, at), _half(raw, at + 2)
    _six_bit_scales(raw, at + 4, b)
    for t in range(4):
        for j in range(32):
            byte = raw[at + 16 + 32 * t + j]
            b.codes[64 * t + j], b.codes[64 * t + 32 + j] = int8(byte & 15), int8(byte >> 4)


@inner
def q5_k(raw, at, b):
    b.head[0], b.head[1] = _half(raw, at), _half(raw, at + 2)
    _six_bit_scales(raw, at + 4, b)
    for t in range(4):
        for j in range(32):
            byte, high = raw[at + 48 + 32 * t + j], raw[at + 16 + j] >> 2 * t
            b.codes[64 * t + j] = int8(byte & 15 | (high & 1) << 4)
            b.codes[64 * t + 32 + j] = int8(byte >> 4 | (high >> 1 & 1) << 4)


@inner
def q6_k(raw, at, b):
    b.head[0] = _half(raw, at + 208)
    for j in range(16):
        b.scales[j] = int32(int8(raw[at + 192 + j]))
    for half in range(2):
        for j in range(32):
            first, second = raw[at + 64 * half + j], raw[at + 64 * half + 32 + j]
            high, e = raw[at + 128 + 32 * half + j], 128 * half + j
            b.codes[e] = int8((first & 15 | (high & 3) << 4) - 32)
            b.codes[e + 32] = int8((second & 15 | (high >> 2 & 3) << 4) - 32)
            b.codes[e + 64] = int8((first >> 4 | (high >> 4 & 3) << 4) - 32)
            b.codes[e + 96] = int8((second >> 4 | (high >> 6) << 4) - 32)


@inner
def iq4_xs(raw, at, b):
    b.head[0] = _half(raw, at)
    high = uint32(raw[at + 2] | raw[at + 3] << 8)
    for j in range(8):
        low = raw[at + 4 + (j >> 1)] >> (j & 1) * 4 & 15
        b.scales[j] = int32(low | (high >> 2 * j & 3) << 4) - int32(32)
        for i in range(16):
            byte = raw[at + 8 + 16 * j + i]
            b.codes[32 * j + i], b.codes[32 * j + 16 + i] = (
                IQ4_LEVELS[byte & 15],
                IQ4_LEVELS[byte >> 4],
            )


UNPACK = {
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q8_0": q8_0,
    "IQ4_NL": iq4_nl,
    "MXFP4": mxfp4,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
    "IQ4_XS": iq4_xs,
}
