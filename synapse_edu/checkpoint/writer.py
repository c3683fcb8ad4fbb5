"""A trained or converted model → a GGUF file, over PyPI's ``gguf``."""

from contextlib import closing
from pathlib import Path

import numpy as np

from ..atomic import replacing
from ..errors import BadArgument, FileProblem
from ..formats.layout import format_of
from ..formats.matrix import Matrix
from .strings import StringArray

METHODS = {
    np.uint8: "add_uint8", np.int8: "add_int8", np.uint16: "add_uint16", np.int16: "add_int16",
    np.uint32: "add_uint32", np.int32: "add_int32", np.uint64: "add_uint64",
    np.int64: "add_int64", np.float32: "add_float32", np.float64: "add_float64",
    np.bool_: "add_bool",
}  # fmt: skip


def write_gguf(path, metadata, tensors):
    """Write a GGUF version 3 file; an interruption leaves an older file as it was.

    Parameters
    ----------
    path : str or Path
    metadata : mapping of str → value
        ``general.architecture`` is required.  Scalars are NumPy scalars, whose type is kept;
        strings are str; arrays are NumPy arrays, or lists of str or bytes.
    tensors : mapping of str → Matrix or ndarray of float32
    """
    from gguf import GGUFWriter

    path = Path(path)
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise BadArgument("write_gguf: the metadata need general.architecture, a string.")
    try:
        # Closed before it is replaced: Windows does not rename a file that is open.
        with replacing(path) as part, closing(GGUFWriter(part, architecture)) as writer:
            _fill(writer, metadata, tensors)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
    except OSError as error:
        raise FileProblem(f"{path}: could not be written ({error.strerror or error}).") from None


def _fill(writer, metadata, tensors):
    from gguf import GGMLQuantizationType

    for key, value in metadata.items():
        if key == "general.alignment":
            writer.add_custom_alignment(int(value))
        elif key != "general.architecture" and not key.startswith("split."):
            _add(writer, key, value)  # one file is written, whatever the source was cut into
    for name, tensor in tensors.items():
        if isinstance(tensor, Matrix):
            kind = GGMLQuantizationType(format_of(tensor.format).ggml_type)
            writer.add_tensor(name, np.ascontiguousarray(tensor.raw), raw_dtype=kind)
        else:
            writer.add_tensor(name, np.ascontiguousarray(tensor, np.float32))


def _add(writer, key, value):
    if isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, np.generic) and type(value) in METHODS:
        getattr(writer, METHODS[type(value)])(key, value.item())
    elif isinstance(value, np.ndarray | list | tuple | StringArray) and len(value) == 0:
        pass  # PyPI's gguf cannot write an empty array; no key means the same to every reader
    elif isinstance(value, np.ndarray):
        _add_array(writer, key, value)
    elif isinstance(value, list | tuple | StringArray):
        writer.add_array(key, list(value))
    else:
        raise BadArgument(
            f"write_gguf: {key} is a {type(value).__name__}; give NumPy scalars, str, NumPy arrays "
            "or lists of strings, so that the file's types are the ones you mean."
        )


def _add_array(writer, key, value):
    from gguf import GGUFValueType

    kinds = {
        "u1": "UINT8", "i1": "INT8", "u2": "UINT16", "i2": "INT16", "u4": "UINT32", "i4": "INT32",
        "u8": "UINT64", "i8": "INT64", "f4": "FLOAT32", "f8": "FLOAT64", "b1": "BOOL",
    }  # fmt: skip
    kind = kinds.get(value.dtype.kind + str(value.dtype.itemsize))
    if kind is None or value.ndim != 1:
        raise BadArgument(f"write_gguf: {key} must be a one-dimensional array of numbers.")
    writer.add_key_value(key, value.tolist(), GGUFValueType.ARRAY, GGUFValueType[kind])
