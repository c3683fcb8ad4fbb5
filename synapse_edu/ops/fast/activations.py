"""Float32 activation rows → the format that meets the weights, in the layout of the kernels.

The twin of ``formats.activations`` in portable order.  ggml: ``quantize_row_q8_0_ref``,
``quantize_row_q8_1_ref``, ``quantize_row_q8_K_ref`` (ggml-quants.c).
"""

import numpy as np
from numba import float32, int8, int16, int32

from .half import bf16_round, half_round
from .jit import inner
from .kernels.layout import place_k, scales_32, scales_k
from .memory import f32_at, i8_at, i16_at, i32_at

ALMOST_HALF = np.nextafter(np.float32(0.5), np.float32(0))


@inner
def _code(v):
    """A rounded float as int8; infinite and NaN products become 0 (see the twin)."""
    return int8(v) if abs(v) <= float32(127) else int8(0)


@inner
def _largest(x):
    """The largest |x|, or NaN if there is one."""
    most = float32(0)
    for v in x:
        v = abs(v)
        if v > most or v != v:
            most = v
            if v != v:
                break
    return most


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
            code = _code(np.trunc(v + np.copysign(ALMOST_HALF, v)))
            codes[j] = code
            total += int32(code)
        f32_at(d_at + 4 * place, 1)[0] = half_round(d)
        if with_s:
            f32_at(s_at + 4 * place, 1)[0] = half_round(float32(total) * d)
        else:
            i32_at(s_at + 4 * place, 1)[0] = total


@inner
def _signed_largest(x):
    """The first element of the largest size, with its sign; the first NaN if there is one."""
    most, largest = float32(0), float32(0)
    for v in x:
        a = abs(v)
        if a > most:
            most, largest = a, v
        elif v != v:
            return v
    return largest


@inner
def quantize_k(x, y, n_in, token, n_tokens):
    """One row to Q8_K: ties to even, d float32, sums of 16 and of 32 codes."""
    d_at, sums_at, halves_at = scales_k(y, n_in, n_tokens)
    for i in range(n_in >> 8):
        place = i * n_tokens + token
        block, codes = f32_at(x + 1024 * i, 256), i8_at(y + 256 * place, 256)
        largest = _signed_largest(block)
        inverse = float32(-127) / largest if largest != 0 else float32(0)
        sums, halves = i16_at(sums_at + 16 * place, 8), i16_at(halves_at + 32 * place, 16)
        for j in range(16):
            total = int32(0)
            for e in range(16 * j, 16 * j + 16):
                v = np.rint(block[e] * inverse)
                code = _code(float32(127) if v > float32(127) else v)
                codes[place_k(e)] = code
                total += int32(code)
            halves[j] = int16(total)
        for j in range(8):
            sums[j] = int16(int32(halves[2 * j]) + int32(halves[2 * j + 1]))
        f32_at(d_at + 4 * place, 1)[0] = float32(1) / inverse if largest != 0 else float32(0)


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
