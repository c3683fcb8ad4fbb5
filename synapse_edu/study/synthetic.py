"""A model of the right shape and no sense: random blocks, for measuring speed without a download.

How long a pass takes depends on the shapes and formats of the tensors, not on what is in them.
"""

import shutil
from math import prod

import numpy as np

from ..atomic import replacing
from ..checkpoint import catalogue
from ..checkpoint.hf_config import rope_freqs_llama3
from ..checkpoint.writer import write_gguf
from ..config import Config
from ..errors import BadArgument, FileProblem
from ..formats.decode import decode
from ..formats.layout import FORMATS
from ..formats.matrix import Matrix
from .cost import Cost
from .export import metadata_of

SAMPLE = 512  # blocks decoded to find the scale that gives a wanted spread
ONE = 2.0**-6  # the scale they are decoded with: well inside float16's range


def random_blocks(format, n_rows, n_in, rng):
    """Random weights in a block format, with the spread of a trained matrix.

    Codes and sub-block scales are random bytes.  The block's own scale is chosen so that the
    standard deviation is about 1/√n_in and the mean is near 0: a product with it neither explodes
    nor dies out.

    Parameters
    ----------
    format : str
        One with a float16 scale ``d``: all but F32, F16, BF16 and MXFP4.
    n_rows, n_in : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of uint8, shape (n_rows, bytes per row)
    """
    f = FORMATS[format]
    if "d" not in f.dtype.names:
        raise BadArgument(f"random_blocks: {format} has no float16 scale; choose another format.")
    raw = rng.integers(0, 256, (n_rows * n_in // f.block, f.nbytes), np.uint8)
    codes = _decoded(raw, format, d=ONE, minimum=0.0)  # (SAMPLE, f.block)
    unit = 1 / np.sqrt(n_in) / codes.std()
    _set_scales(raw, f, d=ONE * unit, minimum=0.0)
    if _minimum(f):
        one = _decoded(raw, format, d=0.0, minimum=ONE).mean()  # what one unit of it adds
        _set_scales(raw, f, d=ONE * unit, minimum=-codes.mean() * unit * ONE / one)
    return raw.reshape(n_rows, -1)  # (n_rows, bytes per row)


def _minimum(f):
    """The field that shifts a block's codes: ``m``, ``dmin``, or None."""
    return next((name for name in ("m", "dmin") if name in f.dtype.names), None)


def _set_scales(raw, f, d, minimum):
    blocks = raw.view(f.dtype)[:, 0]  # (n_blocks,) of fields
    blocks["d"] = np.float16(d)
    if _minimum(f):
        blocks[_minimum(f)] = np.float16(minimum)


def _decoded(raw, format, d, minimum):
    """The first blocks, as if they had these scales: float32 (SAMPLE, block)."""
    sample = raw[:SAMPLE].copy()
    _set_scales(sample, FORMATS[format], d, minimum)
    return decode(sample, format)


def tensors(config, formats, seed=0):
    """Random tensors for every name of `config`, in the given formats.

    Returns
    -------
    dict of str → Matrix, or ndarray of float32 for vectors
    """
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in config.tensors().items():
        if name == "rope_freqs.weight":  # the factors of Llama 3.1 and later
            factor = 32.0 if config.name.startswith("llama-3.2") else 8.0
            found[name] = rope_freqs_llama3(
                config.rope.freq_base, config.head_dim, factor, 1.0, 4.0, 8192
            )
        elif len(shape) == 1:
            found[name] = np.full(shape, 0.0 if name.endswith("bias") else 1.0, np.float32)
        elif FORMATS[formats[name]].is_float:
            x = rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))
            found[name] = Matrix.from_float32(x, formats[name], name)
        else:
            raw = random_blocks(formats[name], prod(shape[:-1]), shape[-1], rng)
            found[name] = Matrix(raw, formats[name], shape[-1], name)
    return found


def make(name="llama-3.2-1b", mix="Q4_K_M", seed=0, folder=None):
    """Write the model, unless it is there already.

    Parameters
    ----------
    name : str
        A published configuration, as `Config.named` knows it.
    mix : str
        A block format, or ``"Q4_K_M"``.
    seed : int
    folder : Path, optional
        By default the folder of downloaded models.

    Returns
    -------
    Path

    Raises
    ------
    FileProblem
        The disk has no room.
    """
    config = Config.named(name)
    if config.rope.scaling != "none":
        raise BadArgument(f"{name}: only models without a scaled rotary schedule can be made.")
    cost = Cost.of(config, mix)
    folder = folder or catalogue.home() / "models"
    path = folder / f"{name}-synthetic-{seed}.{mix}.gguf"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < 1.1 * cost.nbytes:
        raise FileProblem(f"{folder} has no room for {cost.nbytes / 1e9:.1f} GB of {name}.")
    formats = {tensor.name: tensor.format for tensor in cost.tensors}
    metadata = metadata_of(config) | {
        "general.name": f"{name}, random weights of seed {seed}",
        "tokenizer.ggml.model": "none",
    }
    with replacing(path) as part:
        write_gguf(part, metadata, tensors(config, formats, seed))
    return path
