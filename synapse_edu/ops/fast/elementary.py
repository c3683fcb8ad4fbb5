"""Elementary functions in compiled code: the twins of ``ops.reference.elementary``.

One number at a time, in the same arithmetic.  What varies is chosen by value (``a if c else b``)
where it can be, so that LLVM lays a loop over `exp_poly` into vector registers.

Only the AVX2 build's order uses fused multiply-adds, and that order runs on the reference
backend; so `fma` has no twin here, and `exp_poly` no fused form.
"""

import math

import numpy as np
from llvmlite import ir
from numba import float32, float64, int64, types, uint32, uint64
from numba.extending import intrinsic

from .. import constants as C
from .half import bits_of, float_of
from .jit import inner, njit

INF, NAN = float("inf"), float("nan")
ONE, ZERO, SMALL = np.float32(1), np.float32(0), np.float32(2.0**-126)
ROUND, INV_LN2, HI, LO = C.POLY_ROUND, C.POLY_INV_LN2, C.POLY_LN2_HI, C.POLY_LN2_LO
P1, P2, P3, P4, P5 = C.POLY_C1, C.POLY_C2, C.POLY_C3, C.POLY_C4, C.POLY_C5
N_HUGE, N_LARGE = np.float32(192), np.float32(126)


def _bitcast(source, target, kind):
    @intrinsic
    def cast(context, x):
        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], kind)

        return target(source), codegen

    return cast


bits64_of = _bitcast(types.float64, types.uint64, ir.IntType(64))
double_of = _bitcast(types.uint64, types.float64, ir.DoubleType())


@inner
def exp_poly_one(x):
    """e^x in float32 by ggml's polynomial (``ggml_v_expf``), one rounding a step."""
    z = x * INV_LN2 + ROUND
    n = z - ROUND  # x / ln 2, rounded to an integer
    b = (x - n * HI) - n * LO  # x - n ln 2
    u = b * b
    j = ((P5 * b + P4) * u + (P3 * b + P2)) * u + P1 * b  # e^b - 1
    e = uint32(bits_of(z) << uint32(23))
    k = float_of(uint32(e + uint32(0x3F800000)))  # 2^n
    g = uint32(0x82000000) if n <= ZERO else uint32(0)
    s1, s2 = float_of(uint32(g + uint32(0x7F000000))), float_of(uint32(e - g))
    size = abs(n)
    usual, large = k * j + k, (s2 * j + s2) * s1
    y = large if size > N_LARGE else usual
    return s1 * s1 if size > N_HUGE else y


@inner
def _exp2(x):
    """2^x for float64 x in the range of float32, before the last rounding."""
    kd = x + C.ROUND_TO_INT / 32
    ki = bits64_of(kd)
    r = x - (kd - C.ROUND_TO_INT / 32)
    s = double_of(uint64(C.EXP2_TABLE[ki & uint64(31)] + (ki << uint64(47))))
    return ((C.EXP2_C0 * r + C.EXP2_C1) * (r * r) + (C.EXP2_C2 * r + 1.0)) * s


@inner
def expf_one(x):
    """e^x, the bits of glibc's expf."""
    d = float64(x)
    if d != d:
        return x
    if d > C.EXP_OVERFLOW:
        return float32(INF)
    if d < C.EXP_UNDERFLOW:
        return ZERO
    return float32(_exp2(C.INV_LN2 * d))


@inner
def _split(x):
    """x = z·2^k with z near 1: (interval 0..15, k, z) for a positive finite float32."""
    small = x < SMALL
    ix = int64(bits_of(x * float32(2.0**23) if small else x)) - (int64(23 << 23) if small else 0)
    top = ix - C.LOG_OFFSET
    k = top >> 23
    return (top >> 19) & 15, k, float64(float_of(uint32(ix - (k << 23))))


@inner
def logf_one(x):
    """ln x, the bits of glibc's logf; -inf at 0, NaN below."""
    if not x > ZERO:
        return float32(-INF) if x == ZERO else float32(NAN)
    if x == float32(INF):
        return x
    i, k, z = _split(x)
    r = z * C.LOG_INV_C[i] - 1.0
    y0 = C.LOG_C[i] + k * C.LN2
    r2 = r * r
    return float32((C.LOG_A0 * r2 + (C.LOG_A1 * r + C.LOG_A2)) * r2 + (y0 + r))


@inner
def powf_one(x, y):
    """x^y, the bits of glibc's powf."""
    size, d = abs(x), float64(y)
    if x != x or not ZERO < size < float32(INF) or not abs(d) < INF or d == 0.0:
        return float32(float64(x) ** d)  # zeros, infinities, NaN and 1 are exact in any libm
    if x < ZERO and d != np.floor(d):
        return float32(NAN)
    i, k, z = _split(size)
    r = z * C.LOG_INV_C[i] - 1.0
    r2 = r * r
    q = C.LOG2_A4 * r + (C.LOG2_C[i] + k)
    q = (C.LOG2_A2 * r + C.LOG2_A3) * r2 + q
    t = d * ((C.LOG2_A0 * r + C.LOG2_A1) * (r2 * r2) + q)
    result = _exp2(min(max(t, -200.0), 200.0))
    odd = x < ZERO and d != 2.0 * np.floor(d / 2.0)
    return float32(-result if odd else result)


@inner
def _reduce(x):
    """x as r + n·π/2 with |r| <= π/4: (r in float64, n, n with the sign of a large x added)."""
    bits = bits_of(x)
    top = bits & uint32(0x7FF00000)
    if top < uint32(0x3F400000):  # |x| < 0.75 needs no reduction
        return float64(x), int64(0), int64(0)
    if top < uint32(0x42F00000):  # |x| < 120
        d = float64(x)
        n = (int64(d * C.INV_HALF_PI_24) + 0x800000) >> 24
        return (d - n * C.HALF_PI_HI) - n * C.HALF_PI_LO, n, n
    # Large x: fixed point.  Only the bits of 4/π that matter at x's exponent are multiplied.
    row = int64((bits >> uint32(26)) & uint32(15))
    shift = uint64((bits >> uint32(23)) & uint32(7))
    m = uint64((bits & uint32(0xFFFFFF)) | uint32(0x800000)) << shift
    low, mid = m * C.INV_PIO4[min(row + 8, 23)], m * C.INV_PIO4[min(row + 4, 23)]
    total = uint64(((low >> uint64(32)) | ((m * C.INV_PIO4[row]) << uint64(32))) + mid)
    quadrant = uint64(total + uint64(1 << 61)) >> uint64(62)
    rest = float64(int64(uint64(total - (quadrant << uint64(62))))) * C.TWO_PI_64
    n = int64(quadrant)
    return rest, n, n + int64(bits >> uint32(31))


@inner
def sincosf_one(x):
    """sin x and cos x, the bits of glibc's sinf and cosf."""
    if not abs(x) < float32(INF):
        return float32(NAN), float32(NAN)
    if abs(x) < float32(2.0**-12):
        return x, ONE
    r, n, turn = _reduce(x)
    r = -r if (turn + 1) & 2 else r  # +, -, -, + in quadrants 0..3
    x2 = r * r
    x3, x4 = r * x2, x2 * x2
    odd = (r + x3 * C.SIN_S1) + (x3 * x2) * (C.SIN_S2 + x2 * C.SIN_S3)
    even = ((1.0 + x2 * C.COS_C1) + x4 * C.COS_C2) + (x4 * x2) * (C.COS_C3 + x2 * C.COS_C4)
    even = -even if turn & 2 else even
    return (float32(even), float32(odd)) if n & 1 else (float32(odd), float32(even))


@inner
def sinf_one(x):
    return sincosf_one(x)[0]


@inner
def cosf_one(x):
    return sincosf_one(x)[1]


@inner
def _power_of_two(n):
    """2^n for n from -1022 to 1023."""
    return double_of(uint64(int64(n) + 1023) << uint64(52))


@inner
def exp_one(x):
    """e^x in float64, within two units in the last place, the same bits on every system."""
    if x != x:
        return x
    if x > 800.0:
        return INF
    if x < -800.0:
        return 0.0
    n = min(max(np.rint(x * C.INV_LN2), -2000.0), 2000.0)
    r = (x - n * C.LN2_HI) - n * C.LN2_LO  # |r| <= ln 2 / 2
    y = 1.0
    for i in range(14, 0, -1):  # 1 + r (1 + r/2 (1 + r/3 …))
        y = 1.0 + r * y / i
    half = np.floor(n / 2.0)
    return y * _power_of_two(half) * _power_of_two(n - half)


@inner
def exp_exact_one(x):
    """e^x of float32: the float64 result rounded once."""
    return float32(exp_one(float64(x)))


@inner
def log_one(x):
    """ln x in float64 for a positive finite x, within two units in the last place."""
    m, k = math.frexp(x)
    if m < np.sqrt(0.5):
        m, k = 2.0 * m, k - 1  # m in [0.7, 1.4)
    s = (m - 1.0) / (m + 1.0)
    s2 = s * s
    y = 1.0 / 25
    for i in range(23, 0, -2):  # ln m = 2 (s + s³/3 + s⁵/5 + …)
        y = y * s2 + 1.0 / i
    return k * C.LN2_HI + (2.0 * s * y + k * C.LN2_LO)


def _over_arrays(one, dtype, doc):
    @njit(tag=one.__name__)
    def fill(x, y):
        for i in range(x.size):
            y[i] = one(x[i])

    def function(x):
        x = np.asarray(x, dtype)
        y = np.empty(x.size, dtype)  # (size,)
        fill(np.ascontiguousarray(x).reshape(-1), y)
        return y.reshape(x.shape)

    function.__doc__ = doc
    return function


exp_poly = _over_arrays(exp_poly_one, np.float32, "e^x in float32 by ggml's polynomial.")
expf = _over_arrays(expf_one, np.float32, "e^x, the bits of glibc's expf.")
logf = _over_arrays(logf_one, np.float32, "ln x, the bits of glibc's logf.")
sinf = _over_arrays(sinf_one, np.float32, "sin x, the bits of glibc's sinf.")
cosf = _over_arrays(cosf_one, np.float32, "cos x, the bits of glibc's cosf.")
exp = _over_arrays(exp_one, np.float64, "e^x in float64.")
exp_exact = _over_arrays(exp_exact_one, np.float32, "e^x of float32, rounded once.")
log = _over_arrays(log_one, np.float64, "ln x in float64 for positive finite x.")


def sincosf(x):
    """sin x and cos x of a float32 array, the bits of glibc's sinf and cosf."""
    return sinf(x), cosf(x)


@njit
def _powers(x, y, out):
    for i in range(x.size):
        out[i] = powf_one(x[i], y[i])


def powf(x, y):
    """x^y, the bits of glibc's powf."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float32), np.asarray(y, np.float32))
    out = np.empty(x.size, np.float32)  # (size,)
    _powers(np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1), out)
    return out.reshape(x.shape)
