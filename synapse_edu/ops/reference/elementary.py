"""Elementary functions whose bits are ours: fma, exp, log, pow, sin, cos.

A system's libm would give other last bits on other systems, and one last bit flips a whole
quantum of activation further on.  So every function here is written out in IEEE arithmetic.
`expf`, `logf`, `powf`, `sinf` and `cosf` evaluate, in float64 and in the published order, the
polynomials that glibc's functions of the same names use, and round once to float32.
"""

import numpy as np

from .. import constants as C

F32 = np.float32


def fma(a, b, c):
    """a·b + c with one rounding to float32, as a fused multiply-add gives it.

    The product of two float32 is exact in float64.  Their sum with c may be rounded there, and
    rounding that again to float32 goes wrong only if the first rounding landed halfway between
    two float32, or below the normal ones.  Those few are summed again, rounded to odd: an
    inexact sum keeps an odd last bit, which stands for what was cut off, and the second rounding
    comes out as if it were the only one (Boldo & Melquiond, 2008).
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        p = np.multiply(a, b, dtype=np.float64)
        s = np.asarray(p + c)
        halfway = (s.view(np.int64) & 0x1FFFFFFF) == 0x10000000
        doubtful = halfway | ((np.abs(s) < 2.0**-126) & (s != 0))
        if doubtful.any():
            p, c = (np.broadcast_to(x, s.shape)[doubtful] for x in (p, c))
            s[doubtful] = _add_to_odd(p, c.astype(np.float64))
        return s.astype(F32)


def _add_to_odd(a, b):
    """a + b in float64, rounded to odd; an infinite or NaN sum as it is."""
    s = a + b
    t = s - a
    error = (a - (s - t)) + (b - t)  # exact: s + error = a + b
    bits = s.view(np.int64)
    fix = np.isfinite(s) & (error != 0) & ((bits & 1) == 0)
    step = np.where((error > 0) == (s > 0), 1, -1)
    return (bits + np.where(fix, step, 0)).view(np.float64)


def exp_poly(x, fused=False):
    """e^x in float32 by ggml's polynomial, about 1.5 units in the last place.

    Parameters
    ----------
    x : float32 array
    fused : bool
        Use fused multiply-adds, as the AVX2 build does.

    Notes
    -----
    llama.cpp: ``ggml_v_expf`` in ggml-cpu/vec.h.
    """
    x = np.asarray(x, F32)
    if fused:
        mul_add = fma
    else:

        def mul_add(a, b, c):
            return a * b + c

    with np.errstate(all="ignore"):
        z = mul_add(x, C.POLY_INV_LN2, C.POLY_ROUND)
        n = z - C.POLY_ROUND  # x / ln 2, rounded to an integer
        b = mul_add(n, -C.POLY_LN2_HI, x)
        b = mul_add(n, -C.POLY_LN2_LO, b)  # x - n ln 2
        u = b * b
        high = mul_add(C.POLY_C5, b, C.POLY_C4)
        low = mul_add(C.POLY_C3, b, C.POLY_C2)
        j = mul_add(mul_add(high, u, low), u, C.POLY_C1 * b)  # e^b - 1
        e = np.asarray(z).view(np.uint32) << np.uint32(23)
        k = (e + np.uint32(0x3F800000)).view(F32)  # 2^n
        # Beyond |n| = 126 the scale 2^n is applied in two steps; beyond 192 it is 0 or infinite.
        g = np.where(n <= 0, np.uint32(0x82000000), np.uint32(0))
        s1 = (g + np.uint32(0x7F000000)).view(F32)
        s2 = (e - g).view(F32)
        size = np.abs(n)
        return np.where(
            size > 192, s1 * s1, np.where(size > 126, mul_add(s2, j, s2) * s1, mul_add(k, j, k))
        )


def _exp2(x):
    """2^x for float64 x in the range of float32, before the last rounding."""
    kd = x + C.ROUND_TO_INT / 32
    ki = kd.view(np.uint64)
    r = x - (kd - C.ROUND_TO_INT / 32)
    s = (C.EXP2_TABLE[ki & np.uint64(31)] + (ki << np.uint64(47))).view(np.float64)
    return ((C.EXP2_C0 * r + C.EXP2_C1) * (r * r) + (C.EXP2_C2 * r + 1)) * s


def expf(x):
    """e^x, the bits of glibc's expf."""
    x = np.asarray(x, F32)
    with np.errstate(all="ignore"):
        xd = np.atleast_1d(x).astype(np.float64)
        y = _exp2(C.INV_LN2 * xd)
        y = np.where(xd > C.EXP_OVERFLOW, np.inf, np.where(xd < C.EXP_UNDERFLOW, 0.0, y))
        return np.where(np.isnan(xd), xd, y).astype(F32).reshape(x.shape)


def _split(x):
    """x = z·2^k with z near 1: (interval 0..15, k, z) for positive finite float32."""
    small = x < F32(2.0**-126)
    ix = np.where(small, x * F32(2.0**23), x).view(np.uint32).astype(np.int64)
    ix = ix - np.where(small, 23 << 23, 0)
    top = ix - C.LOG_OFFSET
    k = top >> 23
    z = (ix - (k << 23)).astype(np.uint32).view(F32).astype(np.float64)
    return (top >> 19) & 15, k, z


def logf(x):
    """ln x, the bits of glibc's logf; -inf at 0, NaN below."""
    x = np.asarray(x, F32)
    with np.errstate(all="ignore"):
        flat = np.atleast_1d(x)
        usual = (flat > 0) & (flat < np.inf)
        i, k, z = _split(np.where(usual, flat, F32(1)))
        r = z * C.LOG_INV_C[i] - 1
        y0 = C.LOG_C[i] + k * C.LN2
        r2 = r * r
        y = (C.LOG_A0 * r2 + (C.LOG_A1 * r + C.LOG_A2)) * r2 + (y0 + r)
        y = np.where(usual, y, np.log(flat))  # 0, inf, NaN, negative: exact or NaN
        return y.astype(F32).reshape(x.shape)


def powf(x, y):
    """x^y, the bits of glibc's powf."""
    x, y = np.broadcast_arrays(np.asarray(x, F32), np.asarray(y, F32))
    with np.errstate(all="ignore"):
        shape, x, y = x.shape, np.atleast_1d(x), np.atleast_1d(y)
        size = np.abs(x)
        special = np.power(x, y)  # zeros, infinities, NaN and 1 are exact in any libm
        usual = (size > 0) & (size < np.inf) & np.isfinite(y) & (y != 0) & ~np.isnan(special)
        i, k, z = _split(np.where(usual, size, F32(1)))
        r = z * C.LOG_INV_C[i] - 1
        r2 = r * r
        q = C.LOG2_A4 * r + (C.LOG2_C[i] + k)
        q = (C.LOG2_A2 * r + C.LOG2_A3) * r2 + q
        log2 = (C.LOG2_A0 * r + C.LOG2_A1) * (r2 * r2) + q
        t = np.clip(y.astype(np.float64) * log2, -200.0, 200.0)
        odd = (x < 0) & (np.fmod(y, F32(2)) != 0)
        result = _exp2(t) * np.where(odd, -1.0, 1.0)
        return np.where(usual, result, special).astype(F32).reshape(shape)


def _reduce(x):
    """x as r + n·π/2 with |r| <= π/4: (r in float64, n, n with the sign of a large x added)."""
    bits = x.view(np.uint32)
    top = bits & np.uint32(0x7FF00000)
    xd = np.where(top < np.uint32(0x42F00000), x, F32(0)).astype(np.float64)  # |x| < 120
    n = ((xd * C.INV_HALF_PI_24).astype(np.int64) + 0x800000) >> 24
    # Two parts of π/2 whose products with n are exact: one rounding, as glibc's build for
    # processors with fused multiply-add has.
    r = (xd - n * C.HALF_PI_HI) - n * C.HALF_PI_LO
    # Large x: fixed point.  Only the bits of 4/π that matter at x's exponent are multiplied.
    row = (bits >> np.uint32(26)) & np.uint32(15)
    shift = ((bits >> np.uint32(23)) & np.uint32(7)).astype(np.uint64)
    m = ((bits & np.uint32(0xFFFFFF)) | np.uint32(0x800000)).astype(np.uint64) << shift
    low = m * C.INV_PIO4[np.minimum(row + 8, 23)]
    mid = m * C.INV_PIO4[np.minimum(row + 4, 23)]
    total = ((low >> np.uint64(32)) | (m * C.INV_PIO4[row] << np.uint64(32))) + mid
    quadrant = (total + np.uint64(1 << 61)) >> np.uint64(62)
    rest = (total - (quadrant << np.uint64(62))).view(np.int64) * C.TWO_PI_64
    quadrant = quadrant.astype(np.int64)
    large = top >= np.uint32(0x42F00000)
    direct = top < np.uint32(0x3F400000)  # |x| < 0.75 needs no reduction
    r = np.where(large, rest, np.where(direct, xd, r))
    n = np.where(large, quadrant, np.where(direct, 0, n))
    return r, n, np.where(large, n + (bits >> np.uint32(31)), n)


def sincosf(x):
    """sin x and cos x of a float32 array, the bits of glibc's sinf and cosf."""
    x = np.asarray(x, F32)
    with np.errstate(all="ignore"):
        flat = np.atleast_1d(x)
        finite = np.isfinite(flat)
        flat = np.where(finite, flat, F32(0))
        r, n, turn = _reduce(flat)
        r = r * np.where(((turn + 1) & 2) != 0, -1.0, 1.0)  # +, -, -, + in quadrants 0..3
        x2 = r * r
        x3 = r * x2
        x4 = x2 * x2
        odd = (r + x3 * C.SIN_S1) + (x3 * x2) * (C.SIN_S2 + x2 * C.SIN_S3)
        even = ((1.0 + x2 * C.COS_C1) + x4 * C.COS_C2) + (x4 * x2) * (C.COS_C3 + x2 * C.COS_C4)
        even = np.where((turn & 2) != 0, -even, even)
        swap = (n & 1) != 0
        tiny = np.abs(flat) < F32(2.0**-12)
        sin = np.where(tiny, flat, np.where(swap, even, odd).astype(F32))
        cos = np.where(tiny, F32(1), np.where(swap, odd, even).astype(F32))
        sin, cos = (np.where(finite, y, F32(np.nan)).reshape(x.shape) for y in (sin, cos))
        return sin, cos


def sinf(x):
    """sin x, the bits of glibc's sinf."""
    return sincosf(x)[0]


def cosf(x):
    """cos x, the bits of glibc's cosf."""
    return sincosf(x)[1]


def exp(x):
    """e^x in float64, within two units in the last place, the same bits on every system."""
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        n = np.clip(np.rint(x * C.INV_LN2), -2000, 2000)
        r = (x - n * C.LN2_HI) - n * C.LN2_LO  # |r| <= ln 2 / 2
        y = np.ones_like(r)
        for i in range(14, 0, -1):  # 1 + r (1 + r/2 (1 + r/3 …))
            y = 1 + r * y / i
        half = np.floor(n / 2)
        y = np.ldexp(np.ldexp(y, half.astype(int)), (n - half).astype(int))
        return np.where(x > 800, np.inf, np.where(x < -800, 0.0, np.where(np.isnan(x), x, y)))


def exp_exact(x):
    """e^x of float32: the float64 result rounded once."""
    with np.errstate(all="ignore"):
        return exp(np.asarray(x, F32)).astype(F32)


def log(x):
    """ln x in float64 for positive finite x, within two units in the last place."""
    m, k = np.frexp(np.asarray(x, np.float64))
    low = m < np.sqrt(0.5)
    m, k = np.where(low, 2 * m, m), np.where(low, k - 1, k)  # m in [0.7, 1.4)
    s = (m - 1) / (m + 1)
    s2 = s * s
    y = np.full_like(s, 1 / 25)
    for i in range(23, 0, -2):  # ln m = 2 (s + s³/3 + s⁵/5 + …)
        y = y * s2 + 1 / i
    return k * C.LN2_HI + (2 * s * y + k * C.LN2_LO)
