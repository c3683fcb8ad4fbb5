"""Matrix products over packed weights, one set of kernels a format, reached by address.

A function that computes a whole token is compiled once.  What it does not know is the format of
each weight matrix, so it calls the product through an address, which it finds in a table; only
the formats that a model holds are ever compiled.  All addresses, of data and of code, are plain
int64 numbers in compiled code.

The life of a weight matrix::

    mode = mode_of(weight.format, numerics)             # "blocks", "synapse" or "float32"
    k = for_format(weight.format, mode)                 # a Kernels record; compiles, or loads
    packed = np.empty(repack.packed_bytes(weight.format, n_out, n_in, mode), np.uint8)
    repack.pack(weight, mode, packed)                   # once
    # or weight.raw itself, where repack.usable_as_stored(weight, mode)

One token (matrix times vector)::

    call_quantize(k.quantize, x, y, n_in)               # float32 (n_in,) -> k.activation_bytes
    call_matvec(k.matvec, w, y, out, n_in, row0, row1, scratch)

Many tokens (matrix times matrix), in any order of the tokens::

    call_quantize_batch(k.quantize_batch, x, y, n_in, token, n_tokens)   # x: one token's row
    call_matmat(k.matmat, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch)

Rules
-----
- `row0` and `row1` are multiples of `ROW_UNIT`; `out` has room for n_out rounded up to it (rows of
  padding become 0, or NaN where the activations overflow).  `out_stride` counts float32 numbers
  between the rows of two tokens.
- `w`, `y`, `out` and `scratch` are aligned to 64 bytes (`aligned_empty`); x to 4.
- Kernels with the same ``k.partner`` share the activations: what one quantized, the other reads.
- `scratch` belongs to one thread: ``k.scratch_bytes(n_in, n_tokens)`` bytes.  Its first 8 bytes
  are an int64 to which every product adds the multiply-accumulates that it executed; the rest may
  be anything.
- The bits are those of ``ops.reference.matmul``, alone or in a batch, whatever row0 and row1.
"""

from .calls import call_matmat, call_matvec, call_quantize, call_quantize_batch
from .registry import ROW_UNIT, Kernels, for_format, mode_of

__all__ = [
    "ROW_UNIT",
    "Kernels",
    "call_matmat",
    "call_matvec",
    "call_quantize",
    "call_quantize_batch",
    "for_format",
    "mode_of",
]
