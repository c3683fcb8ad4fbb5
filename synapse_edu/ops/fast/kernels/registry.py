"""The kernels of each format and mode, compiled when first asked for."""

import functools
from dataclasses import dataclass

from ....errors import BadArgument
from ....formats.layout import format_of
from ..activations import ROUTINES
from ..jit import address_of
from ..memory import i64_at
from . import calls
from .families import family
from .layout import activation_bytes

ROW_UNIT = 8  # rows that one register holds; shares of threads are multiples of it


@dataclass(frozen=True)
class Kernels:
    """Addresses of one format's kernels.

    Attributes
    ----------
    format, mode, partner : str
    quantize, quantize_batch, matvec, matmat : int
        Addresses of C functions, for ``call_quantize`` and its siblings alone (`calls`).
    scratch : function
        (n_in, n_tokens) → bytes of scratch that a thread needs.
    """

    format: str
    mode: str
    partner: str
    quantize: int
    quantize_batch: int
    matvec: int
    matmat: int
    scratch: object

    def activation_bytes(self, n_in, n_tokens=1):
        """Bytes that the prepared rows of `n_tokens` tokens take."""
        return activation_bytes(self.partner, n_in, n_tokens)

    def scratch_bytes(self, n_in, n_tokens=1):
        """Bytes of scratch, a multiple of 64."""
        return -(-self.scratch(n_in, n_tokens) // 64) * 64


def mode_of(format, numerics):
    """How weights of `format` meet activations under `numerics`.

    Returns
    -------
    {"blocks", "synapse", "float32"}
        ``"blocks"``: activations rounded to the partner format.  ``"synapse"``: F16 or BF16
        weights and float32 activations.  ``"float32"``: weights decoded to float32, products
        kept exact.

    Raises
    ------
    BadArgument
        For Numerics that no kernel computes.
    """
    if numerics.order == "float64" and numerics.activations == "float32":
        return "float32"
    if numerics.order == "portable" and numerics.activations in ("partner", "quantized"):
        rounded = numerics.activations == "partner" or not format_of(format).is_float
        return "blocks" if rounded or format == "F32" else "synapse"
    raise BadArgument(
        f"No fast matrix product under Numerics {numerics.name!r} "
        f"(activations {numerics.activations}, order {numerics.order}); use backend='reference'."
    )


@functools.cache
def _quantizer(partner):
    routine = ROUTINES[partner]

    def quantize(x, y, n_in, token, n_tokens):
        routine(x, y, n_in, token, n_tokens)

    return address_of(quantize, calls.QUANTIZE, partner)


def _product(emitted, tag):
    """The address of a product that counts what it executes."""

    def product(w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        emitted(w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch)
        i64_at(scratch, 1)[0] += (row1 - row0) * n_in * n_tokens

    return address_of(product, calls.PRODUCT, tag)


@functools.cache
def for_format(format, mode="blocks"):
    """The `Kernels` of a format; compiled, or loaded from the compile cache.

    Parameters
    ----------
    format : str
    mode : {"blocks", "synapse", "float32"}
        From `mode_of`.
    """
    code = family(format, mode)
    partner = format_of(format).partner if mode == "blocks" else "F32"
    quantize = _quantizer(partner)
    many = _product(code.many(), f"{format}|{mode}|many")
    one = _product(code.one(), f"{format}|{mode}|one") if code.one else many
    return Kernels(format, mode, partner, quantize, quantize, one, many, code.scratch_bytes)
