"""IQ4_XS: sub-blocks of 32 with an integer scale each, under one float16 scale for 256 elements.

The kernel is that of the formats of 32 (`rows_32`); it adds one rounded term for each sub-block.
Eight rows of one sub-block are packed together::

    d float16 (8,)   scale int8 (8,)   words (4, 8, 4) bytes, or levels int8 (8, 8, 4)

Its activations are Q8_K, whose codes stand in the order of the K formats' kernels, so they are
first put back in order.  ggml-cpu/quants.c: ``ggml_vec_dot_iq4_xs_q8_K_generic``.
"""

import numpy as np

from ....formats.unpack import IQ4_LEVELS
from ..jit import inner, njit
from ..memory import u8_at
from ..registers import I8, F32x8, I8x32, I32x8, vector
from . import rows_32
from .layout import scales_k_at


class Spec(rows_32.Spec):
    """As in `rows_32`, with the sub-block's scales behind d."""

    @property
    def words_at(self):
        return 24


SPECS = {"IQ4_XS": Spec("IQ4_XS", rows_32.LOOK_UP, table=tuple(IQ4_LEVELS.tolist()), largest=127)}
packed_bytes = rows_32.packed_bytes


def scratch_bytes(spec, n_in, n_tokens):
    """Bytes of scratch: the counter, the sums of every token, the activations put in order."""
    return 64 + 32 * n_tokens + n_in * n_tokens


@inner
def _scale_of(source, sub):
    low = source[4 + (sub >> 1)] >> (sub & 1) * 4 & 15
    high = source[2 + (sub >> 2)] >> 2 * (sub & 3) & 3
    return (low | high << 4) - 32


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix."""
    nbytes, look_up, table = spec.nbytes, spec.bits == 8, np.array(spec.table, np.int8)

    def pack(raw, out, n_out, n_rows, n_in):
        n_block = n_in // 32
        u8_at(out + ((n_rows - 1) // 8) * n_block * nbytes, n_block * nbytes)[:] = 0
        for row in range(n_out):
            lane = row % 8
            for i in range(n_block):
                target = u8_at(out + ((row // 8) * n_block + i) * nbytes, nbytes)
                source = u8_at(raw + (row * n_block + i) // 8 * 136, 136)
                rows_32.pack_head(source, target, lane, 2)
                target[16 + lane] = _scale_of(source, i % 8) & 255
                words = source[8 + 16 * (i % 8) :]
                if look_up:
                    rows_32.pack_levels(words, target, 24, lane, table)
                else:
                    rows_32.pack_words(words, target, 24, lane, 4)

    return njit(pack, tag=repr(spec))


def _in_order(c, spec, y, n_in, n_tokens, scratch):
    """Put the codes of all tokens back in order, a sub-block of every token after the other.

    A function from sub-block and token to the addresses of codes and of d, and the block's own.
    """
    d_at, _, _ = scales_k_at(y, n_in, n_tokens)
    ordered = scratch + 64 + n_tokens * 32
    with c.loop(0, n_in >> 8) as i, c.loop(0, n_tokens) as t:
        block = y + (i * n_tokens + t) * 256
        for sub in range(8):
            pair, s = divmod(sub, 2)
            both = [c.load(I8x32, block, 64 * pair + 32 * h) for h in range(2)]
            lanes = [
                32 * h + 4 * lane + 2 * s + p
                for h in range(2)
                for p in range(2)
                for lane in range(8)
            ]
            place = ordered + ((i * 8 + sub) * n_tokens + t) * 32
            c.store(both[0].shuffle(lanes, both[1]), place)

    def places(i, t):
        return ordered + (i * n_tokens + t) * 32, d_at + ((i >> 3) * n_tokens + t) * 4

    return places


def _term(c, spec, w, codes, sums, y, d_at):
    """The sums of eight rows after one sub-block: ((d · yd) · scale) · integer sum is added."""
    total = rows_32.integer_dot(c, spec, codes, y)
    scale = c.load(vector(I8, 8), w, 16).to(I32x8).to(F32x8)
    d = c.halves(w) * c.load_fill(F32x8, d_at)
    return sums + (d * scale) * total.to(F32x8)


def matvec(spec):
    """What emits the product with one token."""
    return rows_32.matvec(spec, _in_order, _term)


def matmat(spec):
    """What emits the product with many tokens."""
    return rows_32.matmat(spec, _in_order, _term)
