"""Container: one GGUF model file, or all its shards, memory-mapped and read-only.

The weights stay in the memory map, so that several kernels on one machine share one copy.

Examples
--------
>>> container = open_container("model.gguf")                                 # doctest: +SKIP
>>> container.tensors["blk.0.ffn_up.weight"].shape                           # doctest: +SKIP
(128, 64)
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import FileProblem
from .mapped_file import read_file

SHARD = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")


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
                self.tensors[info.name] = replace(info, file=number)

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
    first = read_file(path)
    count = _split(first, "split.count")
    number = _split(first, "split.no")
    if number:
        _refuse_later_shard(path, number, count)
    files = [first]
    for i in range(1, count):
        shard = read_file(_sibling(path, i, count))
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
