"""Tiny random models of any family, made in memory: to try what a rule does, not what it means."""

from dataclasses import replace

import numpy as np

from ..checkpoint.weights import BIASES, LayerWeights, Weights
from ..config import Config, Rope
from ..errors import BadArgument
from ..formats.matrix import Matrix
from ..model.llama import Llama


def tiny_config(architecture="llama", **changes):
    """A config of two layers of width 64: four query heads of 16 on two key/value heads.

    Changes to the rotation are given by its own names: ``scaling="yarn"``, ``factor=16.0``.
    """
    rope = {
        "n_rot": 16,
        "layout": "neox" if architecture == "qwen2" else "normal",
        "n_ctx_orig": 512,
    }
    own = {name for name in Rope.__dataclass_fields__ if name in changes}
    rope |= {name: changes.pop(name) for name in own}
    config = Config(
        architecture, 2, 64, 4, 2, 16, 96, 128, 512, rope=Rope(**rope), name=f"tiny {architecture}"
    )
    return config.replace(**changes)


def random_model(config, seed=0, format="F32", numerics="llama.cpp", factors=None):
    """A model with random weights, and random biases where its architecture has them.

    Parameters
    ----------
    config : Config
    seed : int
    format : str
        Block format of the matrices.
    numerics : Numerics or str
    factors : ndarray of float32, shape (n_rot / 2,), optional
        Frequency factors.

    Returns
    -------
    Llama
        Without a vocabulary: give it ids.
    """
    if config.architecture not in BIASES:
        raise BadArgument(f"{config.architecture!r}: choose one of {', '.join(BIASES)}.")
    rng = np.random.default_rng(seed)

    def matrix(n_out, n_in):
        x = rng.standard_normal((n_out, n_in)).astype(np.float32) * np.float32(n_in**-0.5)
        return Matrix.from_float32(x, format)

    def vector(n, around):
        return (around + 0.2 * rng.standard_normal(n)).astype(np.float32)

    layers = []
    for _ in range(config.n_layer):
        parts = {}
        for name, shape in config.layer_tensors().items():
            role, kind = name.split(".")
            if kind == "bias":
                parts[f"{role}_bias"] = vector(*shape, 0)
            else:
                parts[role] = matrix(*shape) if len(shape) == 2 else vector(*shape, 1)
        layers.append(LayerWeights(**parts))
    embedding = matrix(config.n_vocab, config.n_embd)
    weights = Weights(
        token_embd=embedding,
        output_norm=vector(config.n_embd, 1),
        output=embedding if config.tied else matrix(config.n_vocab, config.n_embd),
        layers=layers,
        rope_freqs=factors,
    )
    return Llama(config, weights, numerics=numerics)


def changed(model, **changes):
    """The same weights under another config: what a loader would do that forgets something.

    Changes to the rotation are given by its own names; ``biases=False`` drops all biases.
    """
    config, weights = model.config, model.weights
    rope = {name: changes.pop(name) for name in Rope.__dataclass_fields__ if name in changes}
    if rope:
        config = config.replace(rope=Rope(**{**vars(config.rope), **rope}))
    if not changes.pop("biases", True):
        layers = [
            LayerWeights(**{k: v for k, v in vars(layer).items() if not k.endswith("_bias")})
            for layer in weights.layers
        ]
        weights = replace(weights, layers=layers)
    if not changes.pop("factors", True):
        weights = replace(weights, rope_freqs=None)
    return Llama(config.replace(**changes), weights, numerics=model.numerics)
