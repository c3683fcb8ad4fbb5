"""Products of quantized rows in plain loops: any format, any processor, rows as in the file.

Each block of weights is taken apart once and meets the activations of every token.  The float32
sums are those of ggml-cpu/quants.c, ``ggml_vec_dot_*_generic``: one rounded term a block, in order;
eight sums a row for the K formats, element e of a block in sum e % 8.
"""

from collections import namedtuple

from numba import float32, int16, int32

from ..jit import inner
from ..memory import f32_at, i8_at, i16_at, u8_at
from .layout import place_k, scales_32, scales_k
from .unpack import UNPACK, block_at

Token = namedtuple("Token", "codes d s sums")
SUMS = 9  # float32 sums of one row and token: eight lanes, and one


def scratch_bytes(n_in, n_tokens):
    """Bytes of scratch: the counter, one block taken apart, the sums of every token."""
    return 1536 + 4 * SUMS * n_tokens


@inner
def _token_32(y, n_in, i, token, n_tokens):
    d, s = scales_32(y, n_in, n_tokens)
    place = i * n_tokens + token
    codes = i8_at(y + 32 * place, 32)
    return Token(codes, f32_at(d + 4 * place, 1)[0], f32_at(s + 4 * place, 1)[0], codes)


@inner
def _token_k(y, n_in, i, token, n_tokens):
    d, _, sums = scales_k(y, n_in, n_tokens)
    place = i * n_tokens + token
    codes = i8_at(y + 256 * place, 256)
    return Token(codes, f32_at(d + 4 * place, 1)[0], float32(0), i16_at(sums + 32 * place, 16))


@inner
def _dot_32(b, y):
    total = int32(0)
    for j in range(32):
        total += int32(b.codes[j]) * int32(y.codes[j])
    return float32(total)


@inner
def _q4_0(b, y, sums):
    sums[8] += (_dot_32(b, y) * b.head[0]) * y.d


@inner
def _one_scale(b, y, sums):
    sums[8] += (b.head[0] * y.d) * _dot_32(b, y)


@inner
def _with_minimum(b, y, sums):
    sums[8] += (b.head[0] * y.d) * _dot_32(b, y) + b.head[1] * y.s


@inner
def _lane_sums(b, y, sums):
    """The eight sums of a K format: scaled codes · activations, exact, then one float term."""
    d = b.head[0] * y.d
    for lane in range(8):
        total = int32(0)
        for j in range(32):
            at = 32 * (j >> 2) + 4 * lane + (j & 3)
            total += int32(b.scaled[at]) * int32(y.codes[at])
        sums[lane] += d * float32(total)


@inner
def _min_sum(b, y, per_minimum):
    total = int32(0)
    for j in range(16):
        total += b.mins[j // per_minimum] * int32(y.sums[j])
    return float32(total)


@inner
def _lanes_with_minima(b, y, sums):
    sums[8] -= (b.head[1] * y.d) * _min_sum(b, y, 2)
    _lane_sums(b, y, sums)


@inner
def _q2_k(b, y, sums):
    total = int32(0)
    for j in range(256):
        total += int32(b.scaled[j]) * int32(y.codes[j])
    d, dmin = y.d * b.head[0], y.d * b.head[1]
    sums[8] += d * float32(total) - dmin * _min_sum(b, y, 1)


@inner
def _iq4_xs(b, y, sums):
    """One rounded term for each of the eight sub-blocks of 32."""
    d = b.head[0] * y.d
    for j in range(8):
        total = int32(0)
        for e in range(32 * j, 32 * j + 32):
            total += int32(b.codes[e]) * int32(y.codes[place_k(e)])
        sums[8] += (d * float32(b.scales[j])) * float32(total)


@inner
def _as_they_are(b):
    pass


def _scale_by(width):
    @inner
    def scale(b):
        """Scale · code of every element, at most 128 · 32, in the order of the activations."""
        for e in range(256):
            b.scaled[place_k(e)] = int16(b.scales[e // width] * int32(b.codes[e]))

    return scale


# format: sub-block width or 0, the term of one block
STEPS = {
    "Q4_0": (0, _q4_0),
    "Q4_1": (0, _with_minimum),
    "Q5_0": (0, _one_scale),
    "Q5_1": (0, _with_minimum),
    "Q8_0": (0, _one_scale),
    "IQ4_NL": (0, _one_scale),
    "MXFP4": (0, _one_scale),
    "Q2_K": (16, _q2_k),
    "Q3_K": (16, _lane_sums),
    "Q4_K": (32, _lanes_with_minima),
    "Q5_K": (32, _lanes_with_minima),
    "Q6_K": (16, _lane_sums),
    "IQ4_XS": (0, _iq4_xs),
}


def products(format):
    """The compiled ``matmat`` of a `Format`, over rows as they stand in the file."""
    unpack, (width, step) = UNPACK[format.name], STEPS[format.name]
    scale = _scale_by(width) if width else _as_they_are
    token_of = _token_k if format.block == 256 else _token_32
    block, block_bytes = format.block, format.nbytes

    @inner
    def matmat(w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        n_block = n_in // block
        b = block_at(scratch + 64)
        sums = f32_at(scratch + 1536, SUMS * n_tokens)
        for row in range(row0, row1):
            raw = u8_at(w + row * n_block * block_bytes, n_block * block_bytes)
            sums[:] = 0
            for i in range(n_block):
                unpack(raw, i * block_bytes, b)
                scale(b)
                for t in range(n_tokens):
                    y_t = token_of(y, n_in, i, t, n_tokens)
                    step(b, y_t, sums[SUMS * t : SUMS * (t + 1)])
            for t in range(n_tokens):
                total = sums[SUMS * t + 8]
                for lane in range(8):
                    total += sums[SUMS * t + lane]
                f32_at(out + 4 * (t * out_stride + row), 1)[0] = total

    return matmat
