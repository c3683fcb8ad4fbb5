"""A Hugging Face ``config.json`` → the metadata of a GGUF file.

Source: llama.cpp's converter (conversion/base.py, llama.py, mistral3.py, qwen.py).
"""

import math

import numpy as np

from ..errors import FileProblem, UnsupportedModel

# model_type → architecture of the GGUF file; Mistral 7B and Nemo compute what Llama does.
ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "ministral3": "mistral3",
}
MAX_COUNT = 2**31 - 1


class Settings:
    """Typed look-ups in ``config.json``; a refusal names the setting."""

    def __init__(self, values, where="config.json"):
        self.values, self.where = values, where

    def __contains__(self, name):
        return self.values.get(name) is not None

    def _get(self, name, default):
        if name not in self:
            if default is None:
                raise FileProblem(f"{self.where}: {name} is missing.")
            return default
        return self.values[name]

    def count(self, name, default=None):
        value = self._get(name, default)
        if type(value) is not int or not 0 < value <= MAX_COUNT:
            raise FileProblem(
                f"{self.where}: {name} must be a positive whole number, not {value!r:.40}."
            )
        return value

    def real(self, name, default=None):
        value = self._get(name, default)
        if type(value) not in (int, float) or not abs(value) < 1e30:  # NaN is refused too
            raise FileProblem(f"{self.where}: {name} must be a number, not {value!r:.40}.")
        return float(value)

    def only(self, name, wanted, why):
        """Refuse any value of a setting but `wanted`, which is also its default."""
        value = self.values.get(name)
        if value is not None and value != wanted:
            raise UnsupportedModel(f"{self.where}: {name} = {value!r:.60}: {why}.")


def settings_of(config):
    """The language model's part of ``config.json``, and its GGUF architecture."""
    text = config.get("text_config")
    values = {**config, **text} if isinstance(text, dict) else config
    kind = values.get("model_type")
    if config.get("model_type") == "mistral3" and kind == "mistral":
        kind = "ministral3"  # Mistral Small 3.1: the same graph, without YaRN
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise UnsupportedModel(
            f"config.json: a model of type {kind!r:.60} is not converted; "
            f"{', '.join(ARCHITECTURES)} are."
        )
    settings = Settings(values)
    settings.only("hidden_act", "silu", "only SwiGLU feed-forward layers (silu) are computed")
    settings.only("partial_rotary_factor", 1.0, "only heads that are rotated whole are computed")
    settings.only("quantization_config", {}, "take the unquantized weights of this model")
    return settings, ARCHITECTURES[kind]


def metadata_from(config, name=""):
    """The metadata of the model, without its vocabulary.

    Parameters
    ----------
    config : dict
        What ``config.json`` holds.
    name : str
        For ``general.name``.

    Returns
    -------
    metadata : dict of str → NumPy scalar or str
    rope_freqs : ndarray of float32, shape (head_dim / 2,), or None
        Llama 3.1's frequency factors, which a GGUF file holds as a tensor.

    Raises
    ------
    FileProblem
        A setting is missing, or of the wrong type.
    UnsupportedModel
        The model computes something that this package does not.
    """
    settings, a = settings_of(config)
    n_head = settings.count("num_attention_heads")
    n_head_kv = settings.count("num_key_value_heads", n_head if a == "llama" else None)
    n_embd = settings.count("hidden_size")
    head_dim = settings.count("head_dim", max(1, n_embd // n_head))
    metadata = {
        "general.architecture": a,
        "general.name": name,
        f"{a}.block_count": np.uint32(settings.count("num_hidden_layers")),
        f"{a}.context_length": np.uint32(settings.count("max_position_embeddings")),
        f"{a}.embedding_length": np.uint32(n_embd),
        f"{a}.feed_forward_length": np.uint32(settings.count("intermediate_size")),
        f"{a}.attention.head_count": np.uint32(n_head),
        f"{a}.attention.head_count_kv": np.uint32(n_head_kv),
        f"{a}.attention.key_length": np.uint32(head_dim),
        f"{a}.attention.value_length": np.uint32(head_dim),
        f"{a}.attention.layer_norm_rms_epsilon": np.float32(settings.real("rms_norm_eps")),
        f"{a}.rope.dimension_count": np.uint32(head_dim),
        f"{a}.vocab_size": np.uint32(settings.count("vocab_size")),
    }
    rope = _rope_settings(settings)
    base = rope.real("rope_theta", settings.real("rope_theta", 10000.0))
    metadata[f"{a}.rope.freq_base"] = np.float32(base)
    scaling, rope_freqs = _scaling(rope, a, base, head_dim)
    return metadata | {f"{a}.{key}": value for key, value in scaling.items()}, rope_freqs


def _rope_settings(settings):
    """Newer files say ``rope_parameters`` where older ones say ``rope_scaling``."""
    for name in ("rope_parameters", "rope_scaling"):
        if name in settings:
            if not isinstance(settings.values[name], dict):
                raise FileProblem(f"config.json: {name} must be an object.")
            return Settings(settings.values[name], f"config.json: {name}")
    return Settings({}, "config.json: rope_scaling")


def _scaling(rope, architecture, base, head_dim):
    """(metadata of the rotary schedule without the architecture's prefix, factors or None)."""
    kind = rope.values.get("rope_type") or rope.values.get("type") or "default"
    if kind == "default":
        return {}, None
    if kind == "llama3":
        return {}, rope_freqs_llama3(
            base,
            head_dim,
            rope.real("factor", 8.0),
            rope.real("low_freq_factor", 1.0),
            rope.real("high_freq_factor", 4.0),
            rope.real("original_max_position_embeddings", 8192.0),
        )
    if kind == "linear":
        return {
            "rope.scaling.type": "linear",
            "rope.scaling.factor": np.float32(rope.real("factor")),
        }, None
    if kind == "yarn":
        return _yarn(rope, architecture), None
    raise UnsupportedModel(f"{rope.where}: the rotary schedule {kind!r:.60} is not computed.")


def _yarn(rope, architecture):
    rope.only("attention_factor", None, "its own attention factor is not converted")
    length = rope.count("original_max_position_embeddings")
    keys = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": np.float32(rope.real("factor")),
        "rope.scaling.original_context_length": np.uint32(length),
    }
    for name in ("beta_fast", "beta_slow"):
        if name in rope:
            keys[f"rope.scaling.yarn_{name}"] = np.float32(rope.real(name))
    if architecture == "mistral3":
        keys["rope.scaling.yarn_log_multiplier"] = np.float32(rope.real("mscale_all_dim"))
        keys["attention.temperature_scale"] = np.float32(rope.real("llama_4_scaling_beta"))
    return keys


def rope_freqs_llama3(base, head_dim, factor, low_freq_factor, high_freq_factor, n_ctx_orig):
    """Llama 3.1's frequency factors: what each pair's angle is divided by.

    A pair whose wavelength fits often into the old context keeps its speed, because training has
    shown it every angle.  One whose wavelength is longer than the old context is slowed by
    `factor`, so that the new context shows it no angle that it has not seen.  Those in between
    are mixed.

    Parameters
    ----------
    base : float
    head_dim : int
    factor, low_freq_factor, high_freq_factor : float
    n_ctx_orig : float
        Context length before it was extended, in tokens.

    Returns
    -------
    ndarray of float32, shape (head_dim / 2,)

    Notes
    -----
    llama.cpp's ``LlamaModel.generate_extra_tensors``; float32 throughout, but for the power.

    Examples
    --------
    >>> rope_freqs_llama3(500000.0, 128, 8.0, 1.0, 4.0, 8192)[[0, 32, 63]].tolist()
    [1.0, 2.6945300102233887, 8.0]
    """
    if not low_freq_factor < high_freq_factor or low_freq_factor <= 0 or factor <= 0 or base <= 0:
        raise FileProblem(
            "config.json: llama3's rotary schedule needs 0 < low_freq_factor < high_freq_factor, "
            "and a positive factor and rope_theta."
        )
    f32 = np.float32
    exponents = np.arange(0, head_dim, 2, dtype=f32) / f32(head_dim)  # (head_dim / 2,)
    frequencies = f32(1) / np.power(float(base), exponents.astype(float)).astype(f32)
    wavelengths = f32(2 * math.pi) / frequencies  # (head_dim / 2,)
    smooth = (f32(n_ctx_orig) / wavelengths - f32(low_freq_factor)) / f32(
        high_freq_factor - low_freq_factor
    )  # (head_dim / 2,): 0 at the slow end, 1 at the fast end
    mixed = f32(1) / ((f32(1) - smooth) / f32(factor) + smooth)  # (head_dim / 2,)
    fast = wavelengths < f32(n_ctx_orig / high_freq_factor)  # (head_dim / 2,)
    slow = wavelengths > f32(n_ctx_orig / low_freq_factor)  # (head_dim / 2,)
    return np.where(fast, f32(1), np.where(slow, f32(factor), mixed))  # (head_dim / 2,)
