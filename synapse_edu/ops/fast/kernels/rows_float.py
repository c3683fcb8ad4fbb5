"""F32, F16 and BF16 weights: eight rows side by side, one float64 sum each, left to right.

Packed, the eight rows' numbers at one place stand together: (group of rows, n_in, 8).  Rows are
lanes, so each row keeps llama.cpp's order: the product is rounded to float32 (unless the Numerics
keep it exact), then added in float64.  vec.cpp: ``ggml_vec_dot_f32``, ``…_f16``, ``…_bf16``.
"""

from dataclasses import dataclass

from numba import types

from ..jit import njit
from ..memory import u8_at
from ..registers import F32, I16, F32x8, F64x8, I32x8, vector

TOKENS = 4  # whose sums stay in registers while the weights of eight rows pass by


@dataclass(frozen=True)
class Spec:
    """One float format, and whether products stay unrounded."""

    name: str
    exact: bool = False

    @property
    def layout(self):
        return self.name

    @property
    def size(self):
        """Bytes of one number."""
        return 4 if self.name == "F32" else 2


def packed_bytes(spec, n_rows, n_in):
    return n_rows * n_in * spec.size


def scratch_bytes(spec, n_in, n_tokens):
    """Bytes of scratch: the counter."""
    return 64


def packer(spec):
    """A function (raw, out, n_out, n_rows, n_in), addresses first, that packs a matrix."""
    size = spec.size

    def pack(raw, out, n_out, n_rows, n_in):
        for row in range(n_rows):
            source = u8_at(raw + min(row, n_out - 1) * n_in * size, n_in * size)
            target = u8_at(out + (row // 8) * 8 * n_in * size, 8 * n_in * size)
            for k in range(n_in):
                for j in range(size):
                    byte = source[k * size + j] if row < n_out else types.uint8(0)
                    target[(8 * k + row % 8) * size + j] = byte

    return njit(pack, tag=str(size))


def _weights(c, spec, address):
    """Eight rows' numbers as float32."""
    if spec.name == "F32":
        return c.load(F32x8, address)
    if spec.name == "F16":
        return c.halves(address)
    return (c.load(vector(I16, 8), address).unsigned(I32x8) << 16).as_(F32x8)


def _product(c, spec, w, x):
    """Eight products of `w` with one activation, as float64."""
    if spec.exact:
        return w.to(F64x8) * c.fill(x, 8).to(F64x8)
    return (w * c.fill(x, 8)).to(F64x8)


def _tile(c, spec, groups, tokens, n_in):
    """Sums of some groups of eight rows with some tokens: float32 × 8 each, a list a group."""
    zero = c.constant(F64x8, 0)
    sums = [[c.variable(zero) for _ in tokens] for _ in groups]
    with c.loop(0, n_in) as k:
        weights = [_weights(c, spec, group + k * (8 * spec.size)) for group in groups]
        for n, token in enumerate(tokens):
            x = c.load(F32, token + k * 4)
            for g, w in enumerate(weights):
                sums[g][n].add(_product(c, spec, w, x))
    return [[s.get().to(F32x8) for s in group] for group in sums]


def matvec(spec):
    """What emits the product with one token: two groups of rows at a time hide the latency."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        pairs_end = row0 + ((row1 - row0) & -16)
        for start, stop, n in ((row0, pairs_end, 2), (pairs_end, row1, 1)):
            with c.loop(start, stop, 8 * n) as row:
                groups = [w + (row + 8 * i) * n_in * spec.size for i in range(n)]
                for i, (total,) in enumerate(_tile(c, spec, groups, [y], n_in)):
                    c.store(total, out + row * 4, 32 * i)

    return emit


def matmat(spec):
    """What emits the product with many tokens."""

    def emit(c, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        whole = n_tokens & -TOKENS
        with c.loop(row0, row1, 8) as row:
            group = w + row * n_in * spec.size
            for start, stop, n in ((0, whole, TOKENS), (whole, n_tokens, 1)):
                with c.loop(start, stop, n) as t:
                    tokens = [y + (t + i) * n_in * 4 for i in range(n)]
                    for i, total in enumerate(_tile(c, spec, [group], tokens, n_in)[0]):
                        c.store(total, out + ((t + i) * out_stride + row) * 4)

    return emit


SPECS = {
    (name, mode): Spec(name, exact=mode == "float32")
    for name in ("F32", "F16", "BF16")
    for mode in ("blocks", "synapse", "float32")
}
