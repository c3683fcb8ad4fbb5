"""Matrix products: every weight row meets every activation row.

llama.cpp converts the activation row once to the weight format's partner, then takes one dot
product per output element (``ggml_compute_forward_mul_mat``).  Which partner, and in which order
a dot product is summed, is what the Numerics say.
"""

import numpy as np

from ...errors import BadArgument
from ...formats.activations import quantize, round_to
from ...formats.decode import decode
from ...formats.layout import FORMATS
from ...formats.unpack import unpack
from . import dots_portable

F32 = np.float32
CHUNK = 1 << 21  # weights taken apart at a time, so that a large matrix needs little memory


def matmul(weight, x, numerics):
    """Product of a weight matrix with activation rows.

    Parameters
    ----------
    weight : Matrix
        Shape (n_out, n_in), in any format.
    x : ndarray of float32, shape (n, n_in)
        One row a token.
    numerics : Numerics

    Returns
    -------
    ndarray of float32, shape (n, n_out)
    """
    x = np.asarray(x, F32)  # (n, n_in)
    if x.ndim != 2 or x.shape[1] != weight.n_in:
        raise BadArgument(
            f"{weight.name}: rows of {weight.n_in} numbers are needed, not an array of {x.shape}."
        )
    out = np.empty((x.shape[0], weight.n_out), F32)  # (n, n_out)
    if out.size == 0:  # no tokens, or no rows: nothing to take apart
        return out
    if numerics.order == "avx2":
        from . import dots_avx2

        return dots_avx2.matmul(weight, x, numerics)
    dot = _dot(weight.format, x, numerics)
    step = max(8, CHUNK // weight.n_in)
    for start in range(0, weight.n_out, step):
        rows = slice(start, start + step)
        out[:, rows] = dot(weight.raw[rows])
    return out


def _dot(format, x, numerics):
    """The function from raw weight rows (m, row_bytes) to products (n, m), float32."""
    known = FORMATS[format]
    if numerics.activations == "float32" or known.is_float:
        partner = known.partner if numerics.activations == "partner" else "F32"
        y = round_to(x, partner)  # (n, n_in)
        return lambda raw: float_dot(decode(raw, format), y, numerics)
    y = quantize(x, known.partner)
    if numerics.order == "float64":
        return lambda raw: dots_portable.float64_blocks(unpack(raw, format), y)
    return lambda raw: dots_portable.blocks_dot(format, unpack(raw, format), y)


def float_dot(w, x, numerics, batch=1):
    """Dot products of float rows, summed as the Numerics say.

    Parameters
    ----------
    w : ndarray of float16 or float32, shape (m, k)
        Weight rows, keys or values, in the type they are stored in.
    x : ndarray of float32, shape (n, k)
        Activation rows, already rounded to the partner of `w`.
    numerics : Numerics
    batch : int
        Tokens in the pass; the AVX2 build takes another path from two on.

    Returns
    -------
    ndarray of float32, shape (n, m)
    """
    if numerics.order == "avx2":
        from . import dots_avx2

        return dots_avx2.float_dot(w, x, batch)
    return dots_portable.float_dot(w, x, exact=numerics.order == "float64")
