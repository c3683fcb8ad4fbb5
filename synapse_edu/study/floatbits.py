"""A number taken apart: sign, exponent and fraction bits, before and after rounding."""

import numpy as np

from ..errors import BadArgument
from ..formats.activations import bf16_bits

BIT_FIELDS = {"float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}


def bits(value, format="float32"):
    """A number's sign, exponent and fraction bits, rounded to `format` (half to even).

    Returns
    -------
    sign, exponent, fraction : str
        Strings of 0 and 1.
    rounded : float
        The number that these bits stand for.

    Examples
    --------
    >>> bits(1.5, "float16")
    ('0', '01111', '1000000000', 1.5)
    """
    if format not in BIT_FIELDS:
        raise BadArgument(f"bits: {format!r}; choose one of {', '.join(BIT_FIELDS)}.")
    n_exponent, n_fraction = BIT_FIELDS[format]
    with np.errstate(over="ignore"):
        single = np.float32(value)
        if format == "float16":
            half = np.float16(single)
            pattern, rounded = int(half.view(np.uint16)), float(half)
        else:
            pattern, rounded = int(single.view(np.uint32)), float(single)
    if format == "bfloat16":
        pattern = int(bf16_bits(single).reshape(-1)[0])
        rounded = float(np.uint32(pattern << 16).view(np.float32))
    text = f"{pattern:0{1 + n_exponent + n_fraction}b}"
    return text[0], text[1 : 1 + n_exponent], text[1 + n_exponent :], rounded
