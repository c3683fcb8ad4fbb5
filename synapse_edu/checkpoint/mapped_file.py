"""One GGUF file, mapped into memory, with everything that its header claims checked.

Opening reads the header only.  A file that another program shortens while it is mapped is beyond
help: the operating system ends the process that touches the missing pages.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import FileProblem, UnsupportedModel
from ..formats.layout import Format
from .header import Cursor, read_metadata, read_tensor_table

MAGIC = b"GGUF"


@dataclass(frozen=True)
class TensorInfo:
    """Where one tensor lies.

    Attributes
    ----------
    name : str
    shape : tuple of int
        In NumPy order: (rows, elements per row).  The file lists the sizes the other way round.
    format : Format
    start, nbytes : int
        Byte position in its file, and bytes.
    file : int
        Number of the shard that holds it.
    """

    name: str
    shape: tuple
    format: Format
    start: int
    nbytes: int
    file: int = 0


@dataclass(frozen=True)
class MappedFile:
    """One file, its header read and checked."""

    path: Path
    data: np.ndarray
    version: int
    byte_order: str
    metadata: dict
    tensors: list
    alignment: int


def _map(path):
    """The file's bytes as a read-only uint8 array over its memory map."""
    try:
        if not path.exists():
            raise FileProblem(f"{path}: there is no such file. Check the path.")
        if path.is_dir():
            raise FileProblem(f"{path} is a folder. Name the .gguf file in it.")
        if path.stat().st_size < 24:
            raise FileProblem(
                f"{path.name}: {path.stat().st_size} bytes are too few for a GGUF file."
            )
        return np.asarray(np.memmap(path, np.uint8, "r"))  # (size,)
    except (OSError, ValueError) as error:
        raise FileProblem(f"{path}: the file cannot be opened ({error}).") from None


def read_file(path):
    """Map one file and check its whole header.

    Parameters
    ----------
    path : Path

    Returns
    -------
    MappedFile

    Raises
    ------
    FileProblem
        The file is missing, damaged, truncated, or not GGUF; the message names key or tensor.
    UnsupportedModel
        A tensor's type, or the GGUF version, is not read here.
    """
    data = _map(path)
    buffer = memoryview(data)
    if bytes(buffer[:4]) != MAGIC:
        raise FileProblem(
            f"{path.name}: this is not a GGUF file (it begins with {bytes(buffer[:4])!r}). "
            "Safetensors and PyTorch files must be converted first."
        )
    order = _byte_order(buffer, path.name)
    cursor = Cursor(buffer, path.name, order, position=4)
    version = cursor.integer("u4")
    if version not in (2, 3):
        raise UnsupportedModel(
            f"{path.name}: GGUF version {version} is not read here; 2 and 3 are."
        )
    n_tensors, n_keys = cursor.integer("u8"), cursor.integer("u8")
    metadata = read_metadata(cursor, n_keys)
    entries = read_tensor_table(cursor, n_tensors)
    alignment = _alignment(metadata, path.name)
    start = -(-cursor.position // alignment) * alignment  # where the data begins
    tensors = [_place(path.name, entry, start, alignment, len(data)) for entry in entries]
    _check_overlap(path.name, tensors)
    byte_order = "little" if order == "<" else "big"
    return MappedFile(path, data, version, byte_order, metadata, tensors, alignment)


def _byte_order(buffer, name):
    """The header has no flag: a version that is small only when read backwards tells."""
    little = int.from_bytes(buffer[4:8], "little")
    big = int.from_bytes(buffer[4:8], "big")
    if little > 65535 and big > 65535:
        raise FileProblem(f"{name}: the GGUF version is unreadable. The file is damaged.")
    return "<" if little <= 65535 else ">"


def _alignment(metadata, name):
    value = metadata.get("general.alignment", np.uint32(32))
    if not isinstance(value, np.uint32) or value == 0 or value & (value - np.uint32(1)):
        raise FileProblem(
            f"{name}: metadata key 'general.alignment' must be a 32-bit power of two, "
            f"not {value!r:.40}."
        )
    return int(value)


def _place(file_name, entry, start, alignment, size):
    """A TensorInfo, once its bytes are known to lie inside the file."""
    name, shape, format, offset, nbytes = entry
    if offset % alignment:
        raise FileProblem(
            f"{file_name}: tensor {name!r} is misaligned: offset {offset} is not a multiple of "
            f"{alignment}. The file is damaged."
        )
    if start + offset + nbytes > size:
        raise FileProblem(
            f"{file_name} is truncated: tensor {name!r} needs bytes {start + offset} to "
            f"{start + offset + nbytes}, and the file ends at {size}. Download or copy it again."
        )
    return TensorInfo(name, shape, format, start + offset, nbytes)


def _check_overlap(file_name, tensors):
    ordered = sorted(tensors, key=lambda info: info.start)
    for a, b in zip(ordered, ordered[1:], strict=False):
        if a.start + a.nbytes > b.start:
            raise FileProblem(
                f"{file_name}: tensors {a.name!r} and {b.name!r} overlap. The file is damaged."
            )
