"""Which of attention's products a model needs, compiled when it asks."""

import functools

from ...errors import BadArgument
from . import attention_kernels as vector_code
from . import attention_plain as plain
from .jit import address_of
from .kernels.calls import PRODUCT


def kind_of(numerics):
    """``"half"``, ``"wide"`` or ``"rounded"``: see `attention_kernels`.

    Raises
    ------
    BadArgument
        Where the query or the probabilities are stored otherwise than the cache.
    """
    if not numerics.cache == numerics.q == numerics.probabilities or numerics.order == "avx2":
        raise BadArgument(
            f"No fast attention under Numerics {numerics.name!r}; use backend='reference'."
        )
    if numerics.cache == "float16":
        return "half"
    return "wide" if numerics.order == "float64" else "rounded"


@functools.cache
def addresses(kind, head_dim):
    """Addresses of the kernels: scores of 4, 8 and 12 rows, values of 1 to 4 rows.

    Returns
    -------
    tuple of int
        C functions of `kernels.calls.PRODUCT`'s type.
    """
    code = plain if head_dim % 8 else vector_code
    made = [(code.scores, n) for n in range(1, vector_code.MOST_BLOCKS + 1)]
    made += [(code.values, n) for n in range(1, vector_code.LANES + 1)]
    return tuple(_address(make, kind, n) for make, n in made)


@functools.cache
def _address(make, kind, n):
    run = make(kind, n)

    def product(a, b, c, d, e, f, g, h, i):
        run(a, b, c, d, e, f, g, h, i)

    return address_of(product, PRODUCT, f"{make.__module__}.{make.__name__}|{kind}|{n}")
