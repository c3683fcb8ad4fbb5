"""Block layouts: sizes and type numbers against PyPI's gguf; the matrix that holds such bytes."""

import gguf
import numpy as np
import pytest

from synapse_edu.errors import BadArgument, UnsupportedModel
from synapse_edu.formats.layout import FORMATS, OTHER_TYPES, by_type, format_of, row_bytes
from synapse_edu.formats.matrix import Matrix


@pytest.mark.parametrize("name", FORMATS)
def test_sizes_and_numbers_are_ggufs(name):
    known, theirs = FORMATS[name], gguf.GGMLQuantizationType[name]
    assert known.ggml_type == theirs
    assert (known.block, known.nbytes) == gguf.GGML_QUANT_SIZES[theirs]
    assert known.dtype.itemsize == known.nbytes  # packed: no byte between the fields
    assert by_type(np.uint32(theirs)) is known


def test_every_type_that_gguf_knows_has_its_name_here():
    names = {f.ggml_type: f.name for f in FORMATS.values()} | OTHER_TYPES
    for theirs in gguf.GGMLQuantizationType:
        if theirs.value in names:
            assert names[theirs.value] == theirs.name
    assert not set(OTHER_TYPES) & {f.ggml_type for f in FORMATS.values()}


def test_partners():
    """`vec_dot_type` in ggml-cpu's type_traits_cpu."""
    partners = {}
    for known in FORMATS.values():
        partners.setdefault(known.partner, set()).add(known.name)
    assert partners == {
        "F32": {"F32"},
        "F16": {"F16"},
        "BF16": {"BF16"},
        "Q8_0": {"Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "MXFP4"},
        "Q8_1": {"Q4_1", "Q5_1"},
        "Q8_K": {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"},
    }


@pytest.mark.parametrize(
    ("name", "bits"), [("F32", 32), ("Q8_0", 8.5), ("Q4_0", 4.5), ("Q4_K", 4.5), ("Q6_K", 6.5625)]
)
def test_bits_per_weight(name, bits):
    assert FORMATS[name].bits_per_weight == bits


def test_row_bytes():
    assert (row_bytes("Q4_0", 96), row_bytes("Q6_K", 512), row_bytes("BF16", 7)) == (54, 420, 14)
    for n in (33, 0, -32):
        with pytest.raises(BadArgument, match=f"blocks of 32 elements; {n} is not a multiple"):
            row_bytes("Q8_0", n)


def test_types_that_are_not_computed_are_named():
    with pytest.raises(UnsupportedModel, match=r"tensor type 16 \(IQ2_XXS\).*use a file"):
        by_type(16)
    with pytest.raises(UnsupportedModel, match=r"tensor type 4711 \(unknown\)"):
        by_type(4711)
    for name in ("Q4_2", None, ["Q4_0"]):
        with pytest.raises(BadArgument, match="is not a format; choose one of F32, F16"):
            format_of(name)


def test_matrix():
    raw = np.zeros((5, row_bytes("Q8_0", 64)), np.uint8)
    raw.setflags(write=False)
    weight = Matrix(raw, "Q8_0", 64, "blk.0.ffn_up.weight")
    assert (weight.shape, weight.n_out, weight.nbytes) == ((5, 64), 5, 340)
    assert np.shares_memory(weight.raw, raw)
    assert weight.rows([4, 0, 4]).shape == (3, 64) and weight.rows().shape == (5, 64)
    with pytest.raises(BadArgument, match=r"blk.0.ffn_up.weight: 68 bytes a row, but 96 .* 102"):
        Matrix(raw, "Q8_0", 96, "blk.0.ffn_up.weight")


def test_matrix_from_float32():
    x = np.arange(96, dtype=np.float64).reshape(3, 32)
    assert np.array_equal(Matrix.from_float32(x).rows(), x)
    eighths = Matrix.from_float32(x, "Q8_0", "t")
    assert (eighths.format, eighths.name, eighths.shape) == ("Q8_0", "t", (3, 32))
    assert np.abs(eighths.rows(slice(1, 3)) - x[1:]).max() < 0.5
