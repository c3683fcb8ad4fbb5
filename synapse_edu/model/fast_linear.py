"""Compiled pieces of a pass: shares of the threads, prepared activations, products of all rows.

The threads share the rows of a weight matrix, eight at a time.  What is done to whole tokens
(norm, rounding of the activations) they share by tokens; for a single token each thread does it
for itself, which is quicker than to wait for another.
"""

from numba import float32, uint32

from ..ops.fast.barrier import meet
from ..ops.fast.half import float_of
from ..ops.fast.jit import inner
from ..ops.fast.kernels.calls import (
    call_matmat,
    call_matvec,
    call_quantize,
    call_quantize_batch,
)
from ..ops.fast.memory import f32_at, i64_at
from ..ops.fast.norm import rms_norm_row, rms_norm_rows
from . import fast_table as T


@inner
def table_at(address):
    return i64_at(address, T.SIZE)


@inner
def wait(t):
    """Until every thread is here."""
    meet(t[T.PLACE], t[T.N_THREADS], t[T.GIVE_WAY])


@inner
def share(n, unit, number, n_threads):
    """The part of `n` things that a thread takes, in whole units: (first, last + 1)."""
    units = -(-n // unit)
    return number * units // n_threads * unit, (number + 1) * units // n_threads * unit


@inner
def own(t, number):
    """Address of what a thread has to itself."""
    return t[T.WORK] + number * t[T.WORK_BYTES]


@inner
def prepare(t, number, n, rows, stride, n_in, norm, quantize, reused):
    """Activations of `n` tokens in the format that meets a matrix; the address where they are.

    Parameters
    ----------
    rows, stride : address of the first token's row, and numbers from one to the next
    norm : address of a norm's weights, or 0
    quantize : address of the matrix's kernel
    reused : whether other threads may still be reading what was prepared before
    """
    mine = own(t, number)
    normed = mine + t[T.NORMED_AT]
    eps = float_of(uint32(t[T.EPS]))
    if n == 1:
        if norm:
            rms_norm_row(rows, norm, normed, n_in, eps)
        activation = mine + t[T.OWN_AT]
        call_quantize(quantize, normed if norm else rows, activation, n_in)
        return activation
    if reused:
        wait(t)
    first, last = share(n, 1, number, t[T.N_THREADS])
    for token in range(first, last, 4):
        x, x_stride, n_rows = rows + 4 * token * stride, 4 * stride, min(4, last - token)
        if norm:
            rms_norm_rows(x, x_stride, n_rows, norm, normed, n_in, eps)
            x, x_stride = normed, 4 * n_in
        for r in range(n_rows):
            row = x + r * x_stride
            call_quantize_batch(quantize, row, t[T.ACTIVATIONS], n_in, token + r, n)
    wait(t)
    return t[T.ACTIVATIONS]


@inner
def linear(t, number, matrix, y, out, shape, stride, n):
    """This thread's rows of a product, bias added, for all tokens; (first, last + 1) of them.

    Parameters
    ----------
    matrix : address of the matrix's record
    y : address of the prepared activations
    out, stride : address of token 0's result, and numbers from one token to the next
    shape : (n_out, n_in)
    """
    m = i64_at(matrix, 5)
    (n_out, n_in), scratch = shape, own(t, number)
    first, last = share(n_out, 8, number, t[T.N_THREADS])
    if n == 1:
        call_matvec(m[T.MATVEC], m[T.WEIGHTS], y, out, n_in, first, last, scratch)
    else:
        call_matmat(m[T.MATMAT], m[T.WEIGHTS], y, out, n_in, first, last, n, stride, scratch)
    last = min(last, n_out)
    if m[T.BIAS]:
        for token in range(n):
            add(out + 4 * token * stride, m[T.BIAS], first, last)
    return first, last


@inner
def add(x, y, first, last):
    """``x += y`` for some elements; both by address."""
    a, b = f32_at(x, last), f32_at(y, last)
    for i in range(first, last):
        a[i] = float32(b[i] + a[i])
