"""What a GGUF file holds, in lines for a terminal; no weight is read."""

from collections import Counter

import numpy as np

from .checkpoint import catalogue
from .checkpoint.container import open_container
from .checkpoint.hparams import config_from_metadata
from .errors import SynapseError
from .views.text import SPACE, visible

WIDTH = 70  # characters of one value; a chat template has thousands


def describe_file(path, tensors=False, metadata=False):
    """Lines that describe a file.

    Parameters
    ----------
    path : str or Path
        A GGUF file, its first shard, or a model's name.
    tensors, metadata : bool
        Whether every tensor, and every key, gets a line.

    Yields
    ------
    str

    Raises
    ------
    FileProblem
        The file is not there, or damaged.
    """
    container = open_container(catalogue.resolve(path))
    infos = container.tensors.values()
    size = sum(info.nbytes for info in infos)
    yield (
        f"{container.path.name}: GGUF version {container.version}, {container.byte_order}-endian, "
        f"{len(container.metadata)} metadata keys, {len(infos)} tensors of {size:,} bytes"
    )
    if container.tensors:
        try:
            yield str(config_from_metadata(container.metadata, container.tensors))
        except SynapseError as problem:
            yield f"This package cannot compute it: {problem}"
    for name, count in Counter(info.format.name for info in infos).most_common():
        share = sum(info.nbytes for info in infos if info.format.name == name)
        yield f"{count} tensors are {name}: {share:,} bytes"
    if metadata:
        yield "metadata"
        yield from (f"  {plain(k)} = {value(v)}" for k, v in container.metadata.items())
    if tensors:
        yield "tensors (rows, elements per row)"
        width = max((len(plain(name)) for name in container.tensors), default=0)
        for info in infos:
            yield f"  {plain(info.name):{width}} {info.format.name:6} {info.shape}"


def value(v):
    """One metadata value on one line: an array by its length and its first elements."""
    if isinstance(v, str):
        return plain(v)
    if isinstance(v, np.generic):
        return f"{v} ({v.dtype})"
    shown = ", ".join(plain(x) if isinstance(x, bytes) else str(x) for x in v[:4])
    return f"{len(v)} elements: {plain(shown)}{', …' if len(v) > 4 else ''}"


def plain(text):
    """Text from a file, cut short, in which nothing can steer a terminal."""
    text = visible(text).replace(SPACE, " ")
    return text if len(text) <= WIDTH else text[:WIDTH] + "…"
