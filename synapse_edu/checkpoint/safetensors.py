"""Safetensors files: the tensors of a Hugging Face folder, memory-mapped, each bound checked.

A file is eight bytes with the length of its header, a JSON header that says where each tensor
lies, and the data.

Source: the format's description in the safetensors project.
"""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import FileProblem, UnsupportedModel

# their name → our float format, and bytes of an element
FLOATS = {"F32": ("F32", 4), "F16": ("F16", 2), "BF16": ("BF16", 2)}
MAX_HEADER = 100_000_000  # the format's own limit


@dataclass(frozen=True)
class SavedTensor:
    """One tensor of a safetensors file.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Rows first, as in NumPy.
    format : {"F32", "F16", "BF16"}
    raw : ndarray of uint8, shape (rows, bytes per row)
        Read-only view of the memory map; a vector is one row.
    """

    name: str
    shape: tuple
    format: str
    raw: np.ndarray


def read_folder(folder):
    """All tensors of a folder's ``*.safetensors`` files, by name.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    dict of str → SavedTensor

    Raises
    ------
    FileProblem
        There is no such file, or one of them is damaged.
    UnsupportedModel
        A tensor's numbers are of a type that is not converted.
    """
    files = sorted(folder.glob("*.safetensors"))
    # Mistral's folders hold all weights a second time, under its own tensor names.
    files = [file for file in files if not file.name.startswith("consolidated")] or files
    if not files:
        raise FileProblem(
            f"{folder}: there is no .safetensors file in this folder. Weights in PyTorch's own "
            "format (.bin, .pth) are not read, because opening them can run code."
        )
    wanted = _files_of_the_index(folder)
    missing = sorted(wanted - {file.name for file in files})
    if missing:
        raise FileProblem(f"{folder}: {missing[0]} is missing; the index names it. Get it too.")
    tensors = {}
    for file in files:
        if not wanted or file.name in wanted:
            for name, tensor in read_file(file).items():
                if name in tensors:
                    raise FileProblem(f"{file.name}: the tensor {name!r} is in two files.")
                tensors[name] = tensor
    return tensors


def _files_of_the_index(folder):
    """The file names in ``model.safetensors.index.json``; an empty set where there is none."""
    path = folder / "model.safetensors.index.json"
    if not path.exists():
        return set()
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict):
        raise FileProblem(f"{path.name}: it has no weight_map. Download it again.")
    return {str(name) for name in weight_map.values()}


def read_json(path):
    """A JSON file whose top level is an object, as a dict."""
    try:
        return _object(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(f"{path}: cannot be read ({error}).") from None


def _object(text, where):
    def once(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name appears twice")
        return found

    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"{where}: not readable as JSON ({error}). Get it again.") from None
    if not isinstance(value, dict):
        raise FileProblem(f"{where}: an object was expected, not a {type(value).__name__}.")
    return value


def read_file(path):
    """The tensors of one file, by name."""
    path = Path(path)
    try:
        data = np.asarray(np.memmap(path, np.uint8, "r"))  # (size,)
    except (OSError, ValueError) as error:
        raise FileProblem(f"{path}: cannot be opened ({error}).") from None
    length = struct.unpack("<Q", data[:8].tobytes())[0] if len(data) >= 8 else 0
    if not 2 <= length <= min(len(data) - 8, MAX_HEADER):
        raise FileProblem(f"{path.name}: truncated, or not a safetensors file. Get it again.")
    try:
        text = data[8 : 8 + length].tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise FileProblem(f"{path.name}: its header is not valid UTF-8. Get it again.") from None
    header = _object(text, path.name)
    header.pop("__metadata__", None)
    body = data[8 + length :]  # (bytes of all tensors,)
    return {name: _tensor(path.name, name, entry, body) for name, entry in header.items()}


def _tensor(file, name, entry, body):
    where = f"{file}: tensor {name!r}"
    try:
        kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        sound = all(type(n) is int and n >= 0 for n in (start, end, *shape)) and len(shape) <= 8
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise FileProblem(f"{where}: its entry in the header is damaged. Get the file again.")
    if kind not in FLOATS:
        raise UnsupportedModel(
            f"{where}: numbers of type {kind} are not converted; {', '.join(FLOATS)} are."
        )
    format, size = FLOATS[kind]
    if not 0 < math.prod(shape) * size == end - start or end > len(body):
        raise FileProblem(
            f"{where}: shape {shape} and bytes {start} to {end} of {len(body)} do not fit. "
            "The file is damaged or incomplete: get it again."
        )
    n_rows = shape[0] if len(shape) > 1 else 1
    return SavedTensor(name, tuple(shape), format, body[start:end].reshape(n_rows, -1))
