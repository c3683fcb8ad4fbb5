"""Trained parameters → a GGUF file that this package and llama.cpp read, and back."""

import numpy as np

from ..checkpoint.writer import write_gguf
from ..errors import BadArgument
from ..formats.matrix import Matrix


def metadata_of(config):
    """The config as GGUF metadata of the architecture ``llama``."""
    a = config.architecture
    return {
        "general.architecture": a,
        "general.name": config.name,
        "general.license": "apache-2.0",
        f"{a}.block_count": np.uint32(config.n_layer),
        f"{a}.context_length": np.uint32(config.n_ctx_train),
        f"{a}.embedding_length": np.uint32(config.n_embd),
        f"{a}.feed_forward_length": np.uint32(config.n_ff),
        f"{a}.attention.head_count": np.uint32(config.n_head),
        f"{a}.attention.head_count_kv": np.uint32(config.n_head_kv),
        f"{a}.attention.key_length": np.uint32(config.head_dim),
        f"{a}.attention.value_length": np.uint32(config.head_dim),
        f"{a}.attention.layer_norm_rms_epsilon": np.float32(config.rms_eps),
        f"{a}.rope.dimension_count": np.uint32(config.rope.n_rot),
        f"{a}.rope.freq_base": np.float32(config.rope.freq_base),
        f"{a}.vocab_size": np.uint32(config.n_vocab),
    }


def export(path, config, parameters, vocabulary, format="Q8_0"):
    """Write a model.

    Parameters
    ----------
    path : str or Path
    config : Config
    parameters : dict of str → ndarray of float32
        By GGUF name without ``.weight``.
    vocabulary : dict
        Metadata of the tokenizer, as `tokenizer.train.train` gives it.
    format : str
        Of the matrices; norms stay F32.
    """
    tensors = {}
    for name, x in parameters.items():
        name = f"{name}.weight"
        tensors[name] = Matrix.from_float32(x, format, name) if x.ndim == 2 else x
    write_gguf(path, metadata_of(config) | vocabulary, tensors)


def parameters(model):
    """A loaded model's parameters as training has them, decoded to float32 copies.

    Parameters
    ----------
    model : Llama
        With a tied output and no biases, as `export` writes one.

    Returns
    -------
    dict of str → ndarray of float32
        By GGUF name without ``.weight``.

    Raises
    ------
    BadArgument
        For a model that has more than that.
    """
    weights = model.weights
    found = {"token_embd": weights.token_embd, "output_norm": weights.output_norm}
    for i, layer in enumerate(weights.layers):
        found |= {f"blk.{i}.{name}": x for name, x in vars(layer).items() if x is not None}
    if not model.config.tied or {f"{name}.weight" for name in found} != set(model.config.tensors()):
        raise BadArgument("parameters: this model has biases, or an output matrix of its own.")
    return {
        name: np.array(x if isinstance(x, np.ndarray) else x.rows(), np.float32)
        for name, x in found.items()
    }
