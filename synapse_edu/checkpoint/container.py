"""Container: one GGUF model file, or all its shards, memory-mapped and read-only.

Opening reads the header only.  The weights stay in the memory map, so that several kernels on one
machine share one copy.  A file that another program shortens while it is mapped is beyond help:
the operating system ends the process that touches the missing pages.

Examples
--------
>>> container = open_container("model.gguf")                                 # doctest: +SKIP
>>> container.tensors["blk.0.ffn_up.weight"].shape                           # doctest: +SKIP
(128, 64)
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import FileProblem, UnsupportedModel
from ..formats.layout import Format
from .header import Cursor, read_metadata, read_tensor_table

MAGIC = b"GGUF"
SHARD = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")


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


class Container:
    """A GGUF file or a set of shards.

    Attributes
    ----------
    path : Path
        The file, or the first shard.
    metadata : dict
        Key → NumPy scalar, str, ndarray or StringArray.
    tensors : dict of str → TensorInfo
    version : int
    byte_order : {"little", "big"}
    alignment : int
    """

    def __init__(self, path, files):
        first = files[0]
        self.path, self.metadata, self.version = path, first.metadata, first.version
        self.byte_order, self.alignment = first.byte_order, first.alignment
        self._files = files
        self.tensors = {}
        for number, file in enumerate(files):
            for info in file.tensors:
                if info.name in self.tensors:
                    raise FileProblem(f"{file.path.name}: tensor {info.name!r} is in two shards.")
                self.tensors[info.name] = TensorInfo(
                    info.name, info.shape, info.format, info.start, info.nbytes, number
                )

    def __repr__(self):
        return (
            f"Container({self.path.name!r}: {len(self.metadata)} keys, {len(self.tensors)} tensors)"
        )

    def info(self, name):
        if name not in self.tensors:
            raise FileProblem(f"{self.path.name}: the tensor {name!r} is missing.")
        return self.tensors[name]

    def raw(self, name):
        """A tensor's bytes, uint8 of shape (rows, bytes per row), little-endian and read-only.

        A view of the memory map; only a big-endian file makes a copy, because the numbers inside
        its blocks have to be turned round.
        """
        info = self.info(name)
        file = self._files[info.file]
        data = file.data[info.start : info.start + info.nbytes]  # (nbytes,)
        if file.byte_order == "big":
            data = _swapped(data, info.format)  # (nbytes,)
        n_rows = int(np.prod(info.shape[:-1], dtype=np.int64))
        return data.reshape(n_rows, -1)  # (rows, row_bytes)


def _swapped(data, format):
    """A little-endian copy of big-endian blocks: each field's bytes reversed."""
    little = format.dtype
    big = np.dtype([(name, kind.replace("<", ">"), (n,)) for name, kind, n in format.fields])
    blocks = data.view(big)  # (n_block,)
    out = np.empty(blocks.shape, little)  # (n_block,)
    for name, _, _ in format.fields:
        out[name] = blocks[name]
    out.flags.writeable = False
    return out.view(np.uint8)


@dataclass(frozen=True)
class _File:
    """One file, its header read and checked."""

    path: Path
    data: np.ndarray
    version: int
    byte_order: str
    metadata: dict
    tensors: list
    alignment: int


def open_container(path):
    """Open a GGUF file, or the first of its shards.

    Raises
    ------
    FileProblem
        The file is missing, damaged, truncated, or not GGUF; the message names key or tensor.
    UnsupportedModel
        A tensor's type, or the GGUF version, is not read here.
    """
    path = Path(path)
    first = _read(path)
    count = _split(first, "split.count")
    number = _split(first, "split.no")
    if number:
        _refuse_later_shard(path, number, count)
    files = [first]
    for i in range(1, count):
        shard = _read(_sibling(path, i, count))
        if (_split(shard, "split.no"), _split(shard, "split.count")) != (i, count):
            raise FileProblem(
                f"{shard.path.name}: this is not shard {i + 1} of {count} of {path.name}."
            )
        files.append(shard)
    wanted = first.metadata.get("split.tensors.count")
    found = sum(len(file.tensors) for file in files)
    if count and isinstance(wanted, np.integer) and int(wanted) != found:
        raise FileProblem(
            f"{path.name}: its shards hold {found} tensors; {int(wanted)} are expected."
        )
    return Container(path, files)


def _split(file, key):
    value = file.metadata.get(key, np.uint16(0))
    if not isinstance(value, np.integer) or not 0 <= value < 65536:
        raise FileProblem(f"{file.path.name}: metadata key {key!r} must be a small whole number.")
    return int(value)


def _refuse_later_shard(path, number, count):
    match = SHARD.match(path.name)
    first = (
        f"{match['stem']}-00001-of-{match['count']}.gguf" if match else "the first shard (00001)"
    )
    raise FileProblem(
        f"{path.name} is shard {number + 1} of {count}. Open the first one instead: {first}."
    )


def _sibling(path, i, count):
    match = SHARD.match(path.name)
    if not match or int(match["number"]) != 1 or int(match["count"]) != count:
        raise FileProblem(
            f"{path.name} is the first of {count} shards, so its name must end in "
            f"-00001-of-{count:05}.gguf for the others to be found. Give the files their own names."
        )
    shard = path.with_name(f"{match['stem']}-{i + 1:05}-of-{count:05}.gguf")
    if not shard.exists():
        raise FileProblem(f"{path.name}: the shard {shard.name} is missing beside it. Get it too.")
    return shard


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


def _read(path):
    """Map one file and check its whole header."""
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
    return _File(path, data, version, byte_order, metadata, tensors, alignment)


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
