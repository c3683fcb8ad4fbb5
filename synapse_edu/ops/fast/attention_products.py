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


# What `addresses` returns: kernels by number of rows, and two numbers that say how to use them.
FEW, BLOCKS, VALUES = 0, 1, 4  # scores of N_FEW rows; of 4, 8 and 12; values of 1, 2, 3 and 4
N_FEW, WIDTH = 8, 9  # rows that the first kernel takes; elements that those of values sum at once
SIZE = 10


@functools.cache
def addresses(kind, head_dim, n_group):
    """The kernels that a model needs.

    Parameters
    ----------
    kind : str
        From `kind_of`.
    head_dim, n_group : int
        Width of a head; query heads that share a key/value head.

    Returns
    -------
    tuple of SIZE int
        C functions of `kernels.calls.PRODUCT`'s type, N_FEW and WIDTH.
    """
    code = plain if head_dim % 8 else vector_code
    n_few, width = min(n_group, vector_code.LANES), code.width(head_dim)
    made = [(code.few_scores, n_few), (code.few_scores, vector_code.LANES)]
    made += [(code.scores, n) for n in range(2, vector_code.MOST_BLOCKS + 1)]
    made += [(code.values, n, width) for n in range(1, vector_code.LANES + 1)]
    return (*(_address(make, kind, *n) for make, *n in made), n_few, width)


@functools.cache
def _address(make, kind, *sizes):
    run = make(kind, *sizes)

    def product(a, b, c, d, e, f, g, h, i):
        run(a, b, c, d, e, f, g, h, i)

    name = "|".join(str(x) for x in (kind, *sizes))
    return address_of(product, PRODUCT, f"{make.__module__}.{make.__name__}|{name}")
