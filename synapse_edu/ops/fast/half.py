"""Float16 and BF16 numbers in compiled code: exact widening, rounding half to even.

Processors with conversion instructions use them; elsewhere (x86-64 without F16C) the same result
is put together from the bits.
"""

import platform

from llvmlite import ir
from numba import float32, types, uint16, uint32
from numba.extending import intrinsic

from .jit import has_avx2, inner

IN_HARDWARE = has_avx2() or platform.machine().lower() in ("aarch64", "arm64")


@intrinsic
def bits_of(context, x):
    """The bits of a float32 as uint32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), codegen


@intrinsic
def float_of(context, bits):
    """The float32 that has these bits (uint32)."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), codegen


@intrinsic
def _widen(context, h):
    def codegen(context, builder, signature, args):
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def _narrow(context, x):
    def codegen(context, builder, signature, args):
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


@inner
def _widen_by_bits(h):
    h = uint32(h)
    sign, exponent, fraction = (h & uint32(0x8000)) << uint32(16), h & uint32(0x7C00), h & 0x3FF
    if exponent == 0x7C00:  # infinite, or NaN
        return float_of(uint32(sign | uint32(0x7F800000) | uint32(fraction << 13)))
    if exponent == 0:  # zero, or a multiple of 2^-24
        small = float32(fraction) * float32(2.0**-24)
        return -small if sign else small
    return float_of(uint32(sign | (((h & 0x7FFF) << 13) + 0x38000000)))


@inner
def _narrow_by_bits(x):
    bits = bits_of(x)
    sign, a = uint16((bits >> 16) & 0x8000), bits & uint32(0x7FFFFFFF)
    if a > 0x7F800000:
        return uint16(sign | uint16(0x7E00))  # NaN
    if a >= 0x477FF000:  # 65520 and more
        return uint16(sign | uint16(0x7C00))
    if a < 0x38800000:  # below 2^-14: adding 1/2 rounds to a multiple of 2^-24
        return uint16(sign | uint16(bits_of(float_of(uint32(a)) + float32(0.5)) - 0x3F000000))
    return uint16(sign | uint16((a + 0xFFF + ((a >> 13) & 1) - 0x38000000) >> 13))


# float16 bits (uint16) → float32, and back with one rounding
half_to_float = inner(lambda h: _widen(h)) if IN_HARDWARE else _widen_by_bits
float_to_half = inner(lambda x: _narrow(x)) if IN_HARDWARE else _narrow_by_bits


@inner
def half_round(x):
    """A float32 rounded to float16, as float32; beyond 65504 infinite."""
    return half_to_float(float_to_half(x))


@inner
def bf16_round(x):
    """A float32 rounded to BF16, as float32.  ggml: ``ggml_compute_fp32_to_bf16``."""
    bits = bits_of(x)
    if x != x:
        return float_of(uint32(((bits >> 16) | 64) << 16))
    return float_of(uint32((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000))
