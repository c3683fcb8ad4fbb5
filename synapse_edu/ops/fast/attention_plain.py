"""The two products of attention in plain loops, for heads that are no multiple of eight wide."""

from numba import float32, float64

from .half import half_to_float
from .jit import inner
from .memory import f32_at, f64_at, u16_at

LANES = 4


def _row_reader(kind):
    @inner
    def element(row, e):
        if kind == "half":
            return half_to_float(u16_at(row, e + 1)[e])
        return f32_at(row, e + 1)[e]

    return element


def scores(kind, n_block):
    """The twin of ``attention_kernels.scores``."""
    element, exact, n_rows = _row_reader(kind), kind != "rounded", LANES * n_block

    @inner
    def run(k, q, s, head_dim, p0, p1, stride, s_stride, scratch):
        for p in range(p0, p1):
            row = k + p * stride
            for r in range(n_rows):
                total = 0.0
                for e in range(head_dim):
                    x, at = element(row, e), e * n_rows + r
                    if exact:
                        total += float64(x) * f64_at(q, at + 1)[at]
                    else:
                        total += float64(x * f32_at(q, at + 1)[at])
                f32_at(s + 4 * (r * s_stride + p), 1)[0] = float32(total)

    return run


def few_scores(kind, n_rows):
    """The twin of ``attention_kernels.few_scores``: the same loop, over a register of queries."""
    return scores(kind, 1)


def width(head_dim):
    return 8


def values(kind, n_rows, n_elements):
    """The twin of ``attention_kernels.values``."""
    element, exact = _row_reader(kind), kind != "rounded"

    @inner
    def run(v, p, sums, head_dim, p0, p1, stride, p_stride, first):
        for r in range(n_rows):
            for e in range(first, min(first + n_elements, head_dim)):
                total = f64_at(sums + 8 * (r * head_dim + e), 1)
                for position in range(p0, p1):
                    x, at = element(v + position * stride, e), r * p_stride + position - p0
                    if exact:
                        total[0] += float64(x) * f64_at(p, at + 1)[at]
                    else:
                        total[0] += float64(x * f32_at(p, at + 1)[at])

    return run
