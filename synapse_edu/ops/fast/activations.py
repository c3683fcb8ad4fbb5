"""Float32 activation rows → the format that meets the weights, in the layout of the kernels.

The twin of ``formats.activations`` in portable order.  ggml: ``quantize_row_q8_0_ref``,
``quantize_row_q8_1_ref``, ``quantize_row_q8_K_ref`` (ggml-quants.c).
"""

import numpy as np
from numba import float32, int8, int16, int32, uint32

from .half import bf16_round, bits_of, float_of, half_round
from .jit import inner
from .kernels.layout import scales_32, scales_k
from .memory import f32_at, i8_at, i16_at, i32_at
from .registers import I16, I32, F32x8, I32x8
from .simd import kernel

ALMOST_HALF = np.nextafter(np.float32(0.5), np.float32(0))


@inner
def _size(v):
    """|v| as an integer, whose order is that of the sizes; any NaN is above infinity."""
    return int32(int32(bits_of(v)) & int32(0x7FFFFFFF))


# Largest by value (``a if c else b``) and by integers: LLVM lays such loops into registers.
@inner
def _largest(x):
    """The largest |x|, or NaN if there is one."""
    most = int32(0)
    for i in range(x.size):
        size = _size(x[i])
        most = size if size > most else most
    return float_of(uint32(most))


@inner
def quantize_32(x, y, n_in, token, n_tokens, with_s):
    """One row to Q8_0, or Q8_1 if `with_s`: ties away from zero, d rounded to float16.

    Q8_1's s is the sum of the codes times d before that rounding; Q8_0 keeps the sum itself,
    for kernels whose codes are shifted.
    """
    d_at, s_at = scales_32(y, n_in, n_tokens)
    for i in range(n_in >> 5):
        place = i * n_tokens + token
        block, codes = f32_at(x + 128 * i, 32), i8_at(y + 32 * place, 32)
        d = _largest(block) / float32(127)
        inverse = float32(1) / d if d != 0 else float32(0)
        total = int32(0)
        for j in range(32):
            v = block[j] * inverse
            v = np.trunc(v + np.copysign(ALMOST_HALF, v))
            code = int32(v if abs(v) <= float32(127) else float32(0))  # infinite, NaN: see the twin
            codes[j] = int8(code)
            total = int32(total + code)
        f32_at(d_at + 4 * place, 1)[0] = half_round(d)
        if with_s:
            f32_at(s_at + 4 * place, 1)[0] = half_round(float32(total) * d)
        else:
            i32_at(s_at + 4 * place, 1)[0] = total


@inner
def _signed_largest(x):
    """The first element of the largest size, with its sign; the first NaN if there is one."""
    most, n = _size(_largest(x)), int32(x.size)
    most = min(most, int32(0x7F800001))  # the smallest NaN
    where = n
    for i in range(x.size):
        place = int32(i) if _size(x[i]) >= most else n
        where = place if place < where else where
    return x[where]


def _emit_codes(code, x, words, sums_of_16, inverse, *_):
    """The codes of a block of 256 floats, in the order of `kernels.layout`, and their sums."""
    inverse, zero = code.load_fill(F32x8, inverse), code.constant(F32x8, 0.0)
    most = code.constant(F32x8, 127.0)
    for t in range(4):
        for h in range(2):
            codes = []
            for e in (0, 8, 32, 40):  # bytes 0 to 3 of the words
                v = code.load(F32x8, x, 4 * (64 * t + 16 * h + e), align=4) * inverse
                v = code.call("llvm.rint.v8f32", F32x8, v)
                v = code.choose(v.test(">", 127.0), most, v)
                size = code.call("llvm.fabs.v8f32", F32x8, v)
                codes.append(code.choose(size.test("<=", 127.0), v, zero).to(I32x8))
            a, b, c, d = codes
            word = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24
            code.store(word, words, 64 * t + 32 * h, align=4)
            for s, total in enumerate((a + b, c + d)):
                total = code.call("llvm.vector.reduce.add.v8i32", I32, total).to(I16)
                code.store(total, sums_of_16, 2 * (4 * t + 2 * s + h), align=2)


_codes_k = kernel(_emit_codes)


@inner
def quantize_k(x, y, n_in, token, n_tokens):
    """One row to Q8_K: ties to even, d float32, sums of 32 and of 16 codes."""
    d_at, sums_at, halves_at = scales_k(y, n_in, n_tokens)
    for i in range(n_in >> 8):
        place = i * n_tokens + token
        largest, d = _signed_largest(f32_at(x + 1024 * i, 256)), f32_at(d_at + 4 * place, 1)
        d[0] = float32(-127) / largest if largest != 0 else float32(0)  # 1/d, for a moment
        sums, halves = i16_at(sums_at + 16 * place, 8), i16_at(halves_at + 32 * place, 16)
        _codes_k(
            x + 1024 * i, y + 256 * place, halves_at + 32 * place, d_at + 4 * place, 0, 0, 0, 0, 0
        )
        for j in range(8):
            sums[j] = int16(int32(halves[2 * j]) + int32(halves[2 * j + 1]))
        d[0] = float32(1) / d[0] if largest != 0 else float32(0)


@inner
def copy_row(x, y, n_in, token, n_tokens):
    """One row as it is, for F32 weights and for activations that are never rounded."""
    source, target = f32_at(x, n_in), f32_at(y + 4 * n_in * token, n_in)
    for j in range(n_in):
        target[j] = source[j]


@inner
def round_half_row(x, y, n_in, token, n_tokens):
    """One row rounded to F16, held in float32."""
    source, target = f32_at(x, n_in), f32_at(y + 4 * n_in * token, n_in)
    for j in range(n_in):
        target[j] = half_round(source[j])


@inner
def round_bf16_row(x, y, n_in, token, n_tokens):
    """One row rounded to BF16, held in float32."""
    source, target = f32_at(x, n_in), f32_at(y + 4 * n_in * token, n_in)
    for j in range(n_in):
        target[j] = bf16_round(source[j])


@inner
def quantize_q8_0(x, y, n_in, token, n_tokens):
    quantize_32(x, y, n_in, token, n_tokens, False)


@inner
def quantize_q8_1(x, y, n_in, token, n_tokens):
    quantize_32(x, y, n_in, token, n_tokens, True)


ROUTINES = {
    "Q8_0": quantize_q8_0,
    "Q8_1": quantize_q8_1,
    "Q8_K": quantize_k,
    "F32": copy_row,
    "F16": round_half_row,
    "BF16": round_bf16_row,
}
