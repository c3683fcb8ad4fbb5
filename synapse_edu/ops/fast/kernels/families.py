"""Which code serves a format and a mode.

A `Family` gathers what is particular to it: the layout of packed weights, how they are packed, and
the two products.
"""

import functools
from dataclasses import dataclass

from ....errors import BadArgument
from ....formats.layout import format_of, row_bytes
from ..simd import kernel
from . import (
    decoded,
    lanes_k,
    lanes_k_many,
    lanes_k_one,
    lanes_q2,
    rows_32,
    rows_float,
    rows_xs,
)

MODES = ("blocks", "synapse", "float32")


@dataclass(frozen=True)
class Family:
    """How the kernels of one format and mode read weights and compute.

    Attributes
    ----------
    layout : str
        Names the order of the packed bytes; ``"rows"`` is that of the file.
    packed_bytes : function
        (n_rows, n_in) → bytes, n_rows a multiple of eight.
    packer : function or None
        () → compiled (raw, out, n_out, n_rows, n_in); None where rows are copied as they are.
    one, many : function
        () → the product with one token, with many, for compiled code to call: both take the
        arguments of a ``matmat``.  `one` is None where `many` serves.
    scratch_bytes : function
        (n_in, n_tokens) → bytes.
    """

    layout: str
    packed_bytes: object
    packer: object
    one: object
    many: object
    scratch_bytes: object


def _decoded(format):
    def packed_bytes(n_rows, n_in):
        return n_rows * row_bytes(format.name, n_in)

    product = functools.partial(decoded.products, format)
    return Family("rows", packed_bytes, None, None, product, decoded.scratch_bytes)


def _vector(spec, pack, one, many, scratch_bytes):
    return Family(
        f"{pack.__name__.rpartition('.')[2]}:{spec.layout}",
        functools.partial(pack.packed_bytes, spec),
        functools.partial(pack.packer, spec),
        one and (lambda: kernel(one(spec))),
        lambda: kernel(many(spec)),
        functools.partial(scratch_bytes, spec),
    )


def _table():
    """The arguments of `_vector` for each format, or format and mode."""
    table = {
        name: (spec, part, part.matvec, part.matmat, part.scratch_bytes)
        for part in (rows_float, rows_32, rows_xs, lanes_q2)
        for name, spec in part.SPECS.items()
    }
    products = lanes_k_one.matvec, lanes_k_many.matmat, lanes_k_many.scratch_bytes
    return table | {name: (spec, lanes_k, *products) for name, spec in lanes_k.SPECS.items()}


TABLE = _table()


@functools.cache
def family(format, mode="blocks"):
    """The `Family` of a format in a mode.

    Raises
    ------
    BadArgument
        If there is no such mode.
    """
    known = format_of(format)
    if mode not in MODES:
        raise BadArgument(f"mode {mode!r} is not known; choose one of {', '.join(MODES)}.")
    if known.is_float:
        return _vector(*TABLE[format, mode])
    return _decoded(known) if mode == "float32" else _vector(*TABLE[format])
