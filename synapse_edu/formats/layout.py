"""What a block of each format holds, byte by byte.

A quantized row is cut into blocks of 32 or 256 elements.  A block stores small integer codes and
the scale that turns them back into numbers.  The sizes and the order of the fields are those of
ggml (ggml-common.h); all fields are little-endian.

Examples
--------
>>> FORMATS["Q4_K"].nbytes, FORMATS["Q4_K"].bits_per_weight
(144, 4.5)
>>> row_bytes("Q8_0", 64)
68
"""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument, UnsupportedModel


@dataclass(frozen=True)
class Format:
    """One way to store a row of weights.

    Attributes
    ----------
    name : str
    ggml_type : int
        The number that stands for it in a GGUF file.
    block : int
        Elements per block.
    fields : tuple of (str, str, int)
        Name, NumPy type and count of each field, in the order of the bytes.
    partner : str
        Format that an activation row is converted to before it meets such weights.
    n_sub : int
        Sub-blocks with a scale of their own; 0 where the block has one scale only.
    """

    name: str
    ggml_type: int
    block: int
    fields: tuple
    partner: str
    n_sub: int = 0

    @property
    def dtype(self):
        """The block as a packed NumPy structure."""
        return np.dtype([(name, type_, (count,)) for name, type_, count in self.fields])

    @property
    def nbytes(self):
        """Bytes per block."""
        return sum(np.dtype(type_).itemsize * count for _, type_, count in self.fields)

    @property
    def bits_per_weight(self):
        return 8 * self.nbytes / self.block

    @property
    def is_float(self):
        """Whether elements are stored as plain floating-point numbers."""
        return self.block == 1


def _table(*formats):
    return {f.name: f for f in formats}


FORMATS = _table(
    Format("F32", 0, 1, (("x", "<f4", 1),), "F32"),
    Format("F16", 1, 1, (("x", "<f2", 1),), "F16"),
    Format("BF16", 30, 1, (("x", "<u2", 1),), "BF16"),
    # 32 elements, one scale d; the _1 formats add a minimum m
    Format("Q4_0", 2, 32, (("d", "<f2", 1), ("qs", "u1", 16)), "Q8_0"),
    Format("Q4_1", 3, 32, (("d", "<f2", 1), ("m", "<f2", 1), ("qs", "u1", 16)), "Q8_1"),
    Format("Q5_0", 6, 32, (("d", "<f2", 1), ("qh", "<u4", 1), ("qs", "u1", 16)), "Q8_0"),
    Format(
        "Q5_1",
        7,
        32,
        (("d", "<f2", 1), ("m", "<f2", 1), ("qh", "<u4", 1), ("qs", "u1", 16)),
        "Q8_1",
    ),
    Format("Q8_0", 8, 32, (("d", "<f2", 1), ("qs", "i1", 32)), "Q8_0"),
    # 32 elements whose codes index a table of unequal steps
    Format("IQ4_NL", 20, 32, (("d", "<f2", 1), ("qs", "u1", 16)), "Q8_0"),
    Format("MXFP4", 39, 32, (("e", "u1", 1), ("qs", "u1", 16)), "Q8_0"),
    # 256 elements: sub-blocks of 16 or 32 have small integer scales under one float scale
    Format(
        "Q2_K",
        10,
        256,
        (("scales", "u1", 16), ("qs", "u1", 64), ("d", "<f2", 1), ("dmin", "<f2", 1)),
        "Q8_K",
        16,
    ),
    Format(
        "Q3_K",
        11,
        256,
        (("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", "<f2", 1)),
        "Q8_K",
        16,
    ),
    Format(
        "Q4_K",
        12,
        256,
        (("d", "<f2", 1), ("dmin", "<f2", 1), ("scales", "u1", 12), ("qs", "u1", 128)),
        "Q8_K",
        8,
    ),
    Format(
        "Q5_K",
        13,
        256,
        (
            ("d", "<f2", 1),
            ("dmin", "<f2", 1),
            ("scales", "u1", 12),
            ("qh", "u1", 32),
            ("qs", "u1", 128),
        ),
        "Q8_K",
        8,
    ),
    Format(
        "Q6_K",
        14,
        256,
        (("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "<f2", 1)),
        "Q8_K",
        16,
    ),
    Format(
        "IQ4_XS",
        23,
        256,
        (("d", "<f2", 1), ("scales_h", "<u2", 1), ("scales_l", "u1", 4), ("qs", "u1", 128)),
        "Q8_K",
        8,
    ),
)

# Formats that GGUF knows and this package does not compute, for messages.
OTHER_TYPES = {
    9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S",
    22: "IQ2_S", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0",
    35: "TQ2_0", 40: "NVFP4",
}  # fmt: skip


def format_of(name):
    """The `Format` called `name`."""
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        raise BadArgument(
            f"{name!r} is not a format; choose one of {', '.join(FORMATS)}."
        ) from None


def by_type(ggml_type):
    """The `Format` of a GGUF type number.

    Raises
    ------
    UnsupportedModel
        With the type's name where it has one.
    """
    for known in FORMATS.values():
        if known.ggml_type == ggml_type:
            return known
    name = OTHER_TYPES.get(int(ggml_type), "unknown")
    raise UnsupportedModel(
        f"tensor type {ggml_type} ({name}) is not computed here; "
        f"use a file whose tensors are {', '.join(FORMATS)}."
    )


def row_bytes(format, n):
    """Bytes of a row of `n` elements.

    Raises
    ------
    BadArgument
        If `n` is not a positive multiple of the block.
    """
    known = format_of(format)
    if n <= 0 or n % known.block:
        raise BadArgument(
            f"A {format} row holds blocks of {known.block} elements; {n} is not a multiple."
        )
    return n // known.block * known.nbytes
