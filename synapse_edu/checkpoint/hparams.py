"""Metadata → Config, per architecture: defaults and refusals as llama.cpp has them.

Source: ``llama_model::load_hparams`` (src/llama-model.cpp) and the builders in src/models.
"""

from collections.abc import Sequence

import numpy as np

from ..config import Config, Rope
from ..errors import FileProblem, UnsupportedModel

ARCHITECTURES = ("llama", "qwen2", "mistral3")
REQUIRED = object()
MAX_SIZE = 2**31 - 1
MAX_LAYERS = 512  # llama.cpp's LLAMA_MAX_LAYERS


class Keys:
    """Typed look-ups in the metadata; every refusal names the full key."""

    def __init__(self, metadata, architecture):
        self.metadata, self.prefix = metadata, architecture + "."

    def _get(self, name, default):
        key = self.prefix + name
        if key in self.metadata:
            return self.metadata[key]
        if default is REQUIRED:
            raise FileProblem(
                f"The metadata key {key} is missing; the model cannot run without it."
            )
        return default

    def integer(self, name, default=REQUIRED, least=1, most=MAX_SIZE):
        """A whole number; an array of equal numbers (one a layer) counts as one."""
        value = self._get(name, default)
        key = self.prefix + name
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iu":
            if np.any(value != value[0]):
                raise UnsupportedModel(
                    f"{key} differs from layer to layer; only equal layers are computed here."
                )
            value = value[0]
        if value is default and default is not REQUIRED:
            return value
        if not isinstance(value, np.integer):
            raise FileProblem(f"{key} must be a whole number, not {_kind(value)}.")
        if not least <= int(value) <= most:
            raise FileProblem(f"{key} = {int(value)} is out of range: {least} to {most}.")
        return int(value)

    def real(self, name, default=REQUIRED):
        value = self._get(name, default)
        if value is default and default is not REQUIRED:
            return value
        if not isinstance(value, np.floating):
            raise FileProblem(
                f"{self.prefix}{name} must be a floating-point number, not {_kind(value)}."
            )
        if not np.isfinite(value):
            raise FileProblem(f"{self.prefix}{name} = {value} is not a finite number.")
        return float(value)

    def text(self, name, default):
        value = self._get(name, default)
        if not isinstance(value, str):
            raise FileProblem(f"{self.prefix}{name} must be a string, not {_kind(value)}.")
        return value

    def flag(self, name, default):
        value = self._get(name, default)
        if not isinstance(value, bool | np.bool_):
            raise FileProblem(f"{self.prefix}{name} must be true or false, not {_kind(value)}.")
        return bool(value)


def _kind(value):
    return f"{type(value).__name__} {value!r}"[:80]


def config_from_metadata(metadata, tensors):
    """The Config of a model file.

    Parameters
    ----------
    metadata : mapping of str → value
    tensors : mapping of str → TensorInfo
        Tells the vocabulary size, whether the output is tied, and whether rope_freqs is there.

    Returns
    -------
    Config

    Raises
    ------
    FileProblem
        A key is missing, of the wrong type or out of range.
    UnsupportedModel
        The file is sound but holds another kind of model.
    """
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise FileProblem("The metadata key general.architecture is missing or not a string.")
    if architecture not in ARCHITECTURES:
        raise UnsupportedModel(
            f"The architecture {architecture!r} is not computed here; "
            f"{', '.join(ARCHITECTURES)} are (Llama, Mistral, Qwen2, Ministral 3)."
        )
    keys = Keys(metadata, architecture)
    _refuse_other_kinds(keys)
    n_embd = keys.integer("embedding_length")
    n_head = keys.integer("attention.head_count")
    n_head_kv = keys.integer("attention.head_count_kv", n_head)
    if n_head % n_head_kv:
        raise UnsupportedModel(
            f"{keys.prefix}attention.head_count = {n_head} is not a multiple of "
            f"head_count_kv = {n_head_kv}."
        )
    head_dim = _head_dim(keys, architecture, n_embd, n_head)
    n_ctx = keys.integer("context_length")
    name = metadata.get("general.name", "")
    return Config(
        architecture=architecture,
        n_layer=keys.integer("block_count", most=MAX_LAYERS),
        n_embd=n_embd,
        n_head=n_head,
        n_head_kv=n_head_kv,
        head_dim=head_dim,
        n_ff=keys.integer("feed_forward_length"),
        n_vocab=_n_vocab(keys, tensors),
        n_ctx_train=n_ctx,
        rms_eps=_eps(keys),
        tied=bool(tensors) and "output.weight" not in tensors,
        rope=_rope(keys, architecture, head_dim, n_ctx),
        rope_freqs="rope_freqs.weight" in tensors and architecture != "qwen2",
        attn_temperature_scale=_temperature(keys, architecture),
        name=name if isinstance(name, str) else "",
    )


def _refuse_other_kinds(keys):
    if keys.integer("expert_count", 0, least=0) or keys.integer("expert_used_count", 0, least=0):
        raise UnsupportedModel(
            f"{keys.prefix}expert_count: this is a mixture of experts; "
            "only dense models are computed."
        )
    if not keys.flag("attention.causal", True):
        raise UnsupportedModel(
            f"{keys.prefix}attention.causal is false: this model looks ahead and does not generate."
        )


def _eps(keys):
    eps = keys.real("attention.layer_norm_rms_epsilon")
    if eps < 0:
        raise FileProblem(f"{keys.prefix}attention.layer_norm_rms_epsilon = {eps} is negative.")
    return eps


def _head_dim(keys, architecture, n_embd, n_head):
    """Width of a head; keys, values and rotation must agree on it."""
    derived = n_embd // n_head
    head_dim = keys.integer("attention.key_length", derived)
    value_length = keys.integer("attention.value_length", derived)
    n_rot = keys.integer("rope.dimension_count", head_dim)
    if head_dim == derived and n_embd % n_head and architecture != "mistral3":
        raise UnsupportedModel(
            f"{keys.prefix}embedding_length = {n_embd} is not a multiple of head_count = {n_head}, "
            "and no attention.key_length says how wide a head is."
        )
    if head_dim != value_length:
        raise UnsupportedModel(
            f"{keys.prefix}attention.key_length = {head_dim} and value_length = {value_length} "
            "differ; they must be equal here."
        )
    if n_rot != head_dim:
        raise UnsupportedModel(
            f"{keys.prefix}rope.dimension_count = {n_rot} rotates a part of each head of "
            f"{head_dim}; these architectures rotate all of it."
        )
    if head_dim % 2:
        raise UnsupportedModel(f"A head of {head_dim} elements cannot be cut into pairs for RoPE.")
    if architecture == "qwen2" and (head_dim * n_head != n_embd):
        raise UnsupportedModel(
            f"{keys.prefix}attention.key_length = {head_dim}: qwen2 needs "
            f"embedding_length / head_count = {n_embd / n_head:g}."
        )
    return head_dim


def _n_vocab(keys, tensors):
    """Rows of the embedding table, which the vocabulary must match.

    Without a table (a vocabulary-only file), the key vocab_size or the vocabulary itself tells.
    """
    tokens = keys.metadata.get("tokenizer.ggml.tokens", ())
    n_tokens = len(tokens) if isinstance(tokens, Sequence | np.ndarray) else 0
    if "token_embd.weight" not in tensors:
        return keys.integer("vocab_size", None) or n_tokens
    size = tensors["token_embd.weight"].shape[0]
    if n_tokens and n_tokens != size:
        raise FileProblem(
            f"token_embd.weight has {size} rows, but tokenizer.ggml.tokens has {n_tokens} tokens. "
            "The file was put together wrongly: convert it again."
        )
    return size


def _rope(keys, architecture, head_dim, n_ctx):
    scaling = keys.text("rope.scaling.type", "linear")
    if scaling == "longrope":
        raise UnsupportedModel(f"{keys.prefix}rope.scaling.type = longrope is not computed here.")
    if scaling not in ("none", "linear", "yarn"):
        raise UnsupportedModel(f"{keys.prefix}rope.scaling.type = {scaling!r} is not known.")
    factor = keys.real("rope.scaling.factor", None)
    if factor is None:  # the older name of the same key
        factor = keys.real("rope.scale_linear", 0.0)
    if factor < 0:
        raise FileProblem(f"{keys.prefix}rope.scaling.factor = {factor} is negative.")
    factor = factor or 1.0
    freq_base = keys.real("rope.freq_base", 10000.0)
    if freq_base <= 0:
        raise FileProblem(f"{keys.prefix}rope.freq_base = {freq_base} must be positive.")
    own = (
        keys if architecture == "mistral3" else Keys({}, architecture)
    )  # llama reads none of these
    return Rope(
        freq_base=freq_base,
        n_rot=head_dim,
        layout="neox" if architecture == "qwen2" else "normal",
        scaling="none" if scaling == "linear" and factor == 1.0 else scaling,
        factor=1.0 if scaling == "none" else factor,
        n_ctx_orig=keys.integer("rope.scaling.original_context_length", n_ctx),
        attn_factor=keys.real("rope.scaling.attn_factor", 1.0),
        beta_fast=own.real("rope.scaling.yarn_beta_fast", 32.0),
        beta_slow=own.real("rope.scaling.yarn_beta_slow", 1.0),
        yarn_log_multiplier=own.real("rope.scaling.yarn_log_multiplier", 0.0),
    )


def _temperature(keys, architecture):
    return keys.real("attention.temperature_scale", 0.0) if architecture == "mistral3" else 0.0
