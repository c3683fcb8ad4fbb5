"""Tensors by their role, memory-mapped and read-only.

Examples
--------
>>> weights = load_weights(container, config)                                # doctest: +SKIP
>>> weights.layers[0].attn_q                                                 # doctest: +SKIP
"""

import hashlib
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from ..errors import FileProblem, UnsupportedModel
from ..formats.decode import decode
from ..formats.matrix import Matrix


@dataclass
class LayerWeights:
    """One layer.  Matrices stay in their block format; norms and biases are float32 vectors."""

    attn_norm: np.ndarray
    attn_q: Matrix
    attn_k: Matrix
    attn_v: Matrix
    attn_output: Matrix
    ffn_norm: np.ndarray
    ffn_gate: Matrix
    ffn_up: Matrix
    ffn_down: Matrix
    attn_q_bias: np.ndarray | None = None
    attn_k_bias: np.ndarray | None = None
    attn_v_bias: np.ndarray | None = None
    attn_output_bias: np.ndarray | None = None
    ffn_gate_bias: np.ndarray | None = None
    ffn_up_bias: np.ndarray | None = None
    ffn_down_bias: np.ndarray | None = None


@dataclass
class Weights:
    """All weights of a model.

    Attributes
    ----------
    token_embd : Matrix, (n_vocab, n_embd)
    output_norm : ndarray of float32, shape (n_embd,)
    output : Matrix, (n_vocab, n_embd)
        The same object as `token_embd` when the model is tied.
    layers : list of LayerWeights
    output_bias : ndarray of float32, shape (n_vocab,), or None
    rope_freqs : ndarray of float32, shape (head_dim / 2,), or None
        Each pair's angle is divided by its factor.
    """

    token_embd: Matrix
    output_norm: np.ndarray
    output: Matrix
    layers: list = field(default_factory=list)
    output_bias: np.ndarray | None = None
    rope_freqs: np.ndarray | None = None

    @cached_property
    def fingerprint(self):
        """Tells models apart: a hash of the last norm and of the embedding's first row."""
        digest = hashlib.sha256(np.ascontiguousarray(self.output_norm).tobytes())
        digest.update(np.ascontiguousarray(self.token_embd.raw[:1]).tobytes())
        return digest.hexdigest()[:16]


# Biases that each architecture knows; all of them are optional.
QKV = ("attn_q", "attn_k", "attn_v")
BIASES = {
    "llama": (*QKV, "attn_output", "ffn_gate", "ffn_up", "ffn_down"),
    "mistral3": (*QKV, "attn_output", "ffn_gate", "ffn_up", "ffn_down"),
    "qwen2": QKV,
}


class _Reader:
    """Takes tensors from a container, checks their shapes, and remembers which were used."""

    def __init__(self, container):
        self.container, self.used = container, set()

    def has(self, name):
        return name in self.container.tensors

    def _info(self, name, shape):
        if not self.has(name):
            raise FileProblem(f"{self.container.path.name}: the tensor {name} {shape} is missing.")
        info = self.container.tensors[name]
        if info.shape != shape:
            raise FileProblem(
                f"{self.container.path.name}: the tensor {name} has shape {info.shape}; "
                f"the metadata asks for {shape}."
            )
        self.used.add(name)
        return info

    def matrix(self, name, shape):
        info = self._info(name, shape)
        return Matrix(self.container.raw(name), info.format.name, shape[1], name)

    def vector(self, name, shape):
        info = self._info(name, shape)
        if not info.format.is_float:
            raise UnsupportedModel(
                f"{name}: a norm or bias in {info.format.name}; F32 is expected."
            )
        return decode(self.container.raw(name), info.format.name)[0]  # shape

    def optional_vector(self, name, shape):
        return self.vector(name, shape) if self.has(name) else None


def load_weights(container, config):
    """The weights of an opened file, checked against its config.

    Raises
    ------
    FileProblem
        A tensor is missing or has another shape.
    UnsupportedModel
        The file holds a tensor that this architecture does not use.
    """
    read = _Reader(container)
    d, n_vocab = config.n_embd, config.n_vocab
    embedding = read.matrix("token_embd.weight", (n_vocab, d))
    tied = not read.has("output.weight")
    weights = Weights(
        token_embd=embedding,
        output_norm=read.vector("output_norm.weight", (d,)),
        output=embedding if tied else read.matrix("output.weight", (n_vocab, d)),
    )
    if config.architecture == "qwen2":
        weights.output_bias = read.optional_vector("output.bias", (n_vocab,))
    if config.rope_freqs:
        weights.rope_freqs = read.vector("rope_freqs.weight", (config.rope.n_rot // 2,))
    weights.layers = [_layer(read, config, i) for i in range(config.n_layer)]
    _refuse_unused(container, read.used)
    return weights


def _layer(read, config, i):
    shapes = {
        name.removesuffix(".weight"): shape
        for name, shape in config.layer_tensors().items()
        if name.endswith(".weight")
    }
    found = _fused(read, config, i) if read.has(f"blk.{i}.attn_qkv.weight") else {}
    for role, shape in shapes.items():
        if role not in found:
            take = read.matrix if len(shape) == 2 else read.vector
            found[role] = take(f"blk.{i}.{role}.weight", shape)
    for role in BIASES[config.architecture]:
        if f"{role}_bias" not in found:
            found[f"{role}_bias"] = read.optional_vector(f"blk.{i}.{role}.bias", shapes[role][:1])
    return LayerWeights(**found)


def _fused(read, config, i):
    """Some files hold q, k and v as one matrix: its rows are cut into three views."""
    q, kv = config.n_embd_head, config.n_embd_kv
    name = f"blk.{i}.attn_qkv"
    whole = read.matrix(f"{name}.weight", (q + 2 * kv, config.n_embd))
    bias = read.optional_vector(f"{name}.bias", (q + 2 * kv,))
    found, start = {}, 0
    for role, n_rows in zip(QKV, (q, kv, kv), strict=True):
        rows = slice(start, start + n_rows)
        found[role] = Matrix(whole.raw[rows], whole.format, whole.n_in, f"blk.{i}.{role}.weight")
        found[f"{role}_bias"] = None if bias is None else bias[rows]
        start += n_rows
    return found


def _refuse_unused(container, used):
    unused = [name for name in container.tensors if name not in used]
    if unused:
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        raise UnsupportedModel(
            f"{container.path.name}: the tensor {', '.join(unused[:3])}{more} has no place in this "
            "architecture, so the result would be wrong. Is this another kind of model?"
        )


def nbytes(weights):
    """Bytes of all weights, a tied matrix counted once."""
    total, seen = 0, set()
    parts = [getattr(weights, f.name) for f in fields(weights) if f.name != "layers"]
    for layer in weights.layers:
        parts += [getattr(layer, f.name) for f in fields(layer)]
    for part in parts:
        if part is not None and id(part) not in seen:
            seen.add(id(part))
            total += part.nbytes
    return total
