"""Where prepared activations lie in memory.

Blocks come first and tokens second, so that a kernel that has unpacked one block of weights finds
the activations of all tokens one after another.  After the codes of all blocks and tokens come
their scales, then their sums::

    Q8_0   codes int8 (n_block, n_tokens, 32), d float32 (n_block, n_tokens), sum of codes int32
    Q8_1   codes int8 (n_block, n_tokens, 32), d float32 (n_block, n_tokens), s float32
    Q8_K   codes int8 (n_block, n_tokens, 256), d float32 (n_block, n_tokens),
           sums int16 (n_block, n_tokens, 8), sums int16 (n_block, n_tokens, 16)
    F32    float32 (n_tokens, n_in); F16 and BF16 the same, the numbers rounded to them

Q8_K's codes are in an order of their own.  llama.cpp's portable code adds K formats in eight sums,
element e of a block to sum e % 8.  Here the eight sums are the eight 32-bit lanes of a register, so
the codes of one lane stand together, four in each lane: with ``e = 64·t + 32·s + 16·h + 8·p + l``
the code of element e is byte ``64·t + 32·h + 4·l + 2·s + p``.
"""

from ..jit import inner

SUMS_K = 8 * 2 + 16 * 2  # bytes: the sums of 32 codes each, then those of 16


def activation_bytes(partner, n_in, n_tokens=1):
    """Bytes that `n_tokens` prepared rows take, rounded up to whole cache lines."""
    if partner in ("Q8_0", "Q8_1"):
        n = n_tokens * (n_in + n_in // 32 * 8)
    elif partner == "Q8_K":
        n = n_tokens * (n_in + n_in // 256 * (4 + SUMS_K))
    else:
        n = n_tokens * n_in * 4
    return -(-n // 64) * 64 + 64


@inner
def scales_32(y, n_in, n_tokens):
    """Address of Q8_0's and Q8_1's scales; of their sums or s beside it."""
    d = y + n_in * n_tokens
    return d, d + (n_in >> 5) * n_tokens * 4


def scales_k_at(y, n_in, n_tokens):
    """Addresses of Q8_K's scales, sums of 32 and sums of 16; of numbers or of `simd.Value`."""
    n = (n_in >> 8) * n_tokens
    d = y + n_in * n_tokens
    return d, d + n * 4, d + n * 20


scales_k = inner(scales_k_at)  # the same in compiled code
