"""Products summed in float64, left to right: float weights, and weights decoded on the fly.

llama.cpp's F32, F16 and BF16 products round each product to float32 before it is added
(vec.cpp, ``ggml_vec_dot_f32`` and its siblings); the order ``"float64"`` keeps it exact.
"""

from numba import float32, float64

from ..half import float_of, half_to_float
from ..jit import inner
from ..memory import f32_at, f64_at, u8_at, u16_at
from .unpack import UNPACK, block_at

TILE = 256  # elements decoded at a time


def scratch_bytes(n_in, n_tokens):
    """Bytes of scratch: the counter, one block taken apart and decoded, the sums of every token."""
    return 1536 + 4 * TILE + 8 * n_tokens


@inner
def _f32(w, n_in, row, start, count, values, scratch):
    source = f32_at(w + 4 * (n_in * row + start), count)
    for j in range(count):
        values[j] = source[j]


@inner
def _f16(w, n_in, row, start, count, values, scratch):
    source = u16_at(w + 2 * (n_in * row + start), count)
    for j in range(count):
        values[j] = half_to_float(source[j])


@inner
def _bf16(w, n_in, row, start, count, values, scratch):
    source = u16_at(w + 2 * (n_in * row + start), count)
    for j in range(count):
        values[j] = float_of(source[j] << 16)


def _decoder(format):
    """A function that decodes elements start … start + count of a row; the twin of ``decode``."""
    unpack, block, block_bytes = UNPACK[format.name], format.block, format.nbytes
    n_sub = format.n_sub
    names = format.dtype.names
    has_m, has_mins = "m" in names, "dmin" in names

    @inner
    def decode(w, n_in, row, start, count, values, scratch):
        row_bytes = n_in // block * block_bytes
        raw, b = u8_at(w + row * row_bytes, row_bytes), block_at(scratch + 64)
        for first in range(0, count, block):
            unpack(raw, (start + first) // block * block_bytes, b)
            d = b.head[0]
            for e in range(block):
                if n_sub:
                    sub = e // (block // n_sub)
                    value = float32(b.codes[e]) * (d * float32(b.scales[sub]))
                    if has_mins:
                        value -= b.head[1] * float32(b.mins[sub])
                else:
                    value = float32(b.codes[e]) * d
                    if has_m:
                        value += b.head[1]
                values[first + e] = value

    return decode


def products(format, exact):
    """The compiled ``matmat`` of a `Format` whose weights meet float32 numbers.

    Parameters
    ----------
    format : Format
    exact : bool
        Whether the products stay unrounded.
    """
    decode = {"F32": _f32, "F16": _f16, "BF16": _bf16}.get(format.name) or _decoder(format)

    @inner
    def matmat(w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        values = f32_at(scratch + 1536, TILE)
        sums = f64_at(scratch + 1536 + 4 * TILE, n_tokens)
        for row in range(row0, row1):
            sums[:] = 0
            for start in range(0, n_in, TILE):
                count = min(TILE, n_in - start)
                decode(w, n_in, row, start, count, values, scratch)
                for t in range(n_tokens):
                    x = f32_at(y + 4 * (n_in * t + start), count)
                    total = sums[t]
                    for j in range(count):
                        if exact:
                            total += float64(values[j]) * float64(x[j])
                        else:
                            total += float64(values[j] * x[j])
                    sums[t] = total
            for t in range(n_tokens):
                f32_at(out + 4 * (t * out_stride + row), 1)[0] = float32(sums[t])

    return matmat
