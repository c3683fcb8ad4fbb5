"""What one token costs: weights, bytes, multiply-accumulates, cache.

Everything here follows from the `Config` and from the format of each tensor.  A
multiply-accumulate (MAC) is one product added to a sum; a matrix of n_out × n_in weights takes
n_out · n_in of them for each token.

Examples
--------
>>> from synapse_edu.config import Config
>>> cost = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
>>> cost.attention_macs(0), cost.cache_bytes(1)
(65536, 32768)
"""

import math
from dataclasses import dataclass

from ..arguments import is_whole
from ..checkpoint.container import open_container
from ..checkpoint.hparams import config_from_metadata
from ..errors import BadArgument
from ..formats.layout import FORMATS, row_bytes

MIB = 1024**2
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclass(frozen=True)
class TensorCost:
    """One tensor: its name, shape (rows, elements per row), format, weights and bytes."""

    name: str
    shape: tuple
    format: str
    n_weights: int
    nbytes: int

    @property
    def layer(self):
        """Layer number, or None for a tensor of the model as a whole."""
        parts = self.name.split(".")
        return int(parts[1]) if parts[0] == "blk" else None

    @property
    def is_matrix(self):
        """Whether activations are multiplied by it (norms and biases are not matrices)."""
        return len(self.shape) == 2


@dataclass(frozen=True)
class Phase:
    """The work of one pass: multiply-accumulates, and the bytes read for them.

    Attributes
    ----------
    n_tokens, n_reads : int
        Tokens processed, and times the weights are streamed for them.
    matrix_macs, attention_macs : int
    weight_bytes, cache_bytes : int
        Bytes of weights read, all `n_reads` together; bytes of keys and values read.
    """

    n_tokens: int
    n_reads: int
    matrix_macs: int
    attention_macs: int
    weight_bytes: int
    cache_bytes: int

    @property
    def macs(self):
        return self.matrix_macs + self.attention_macs

    @property
    def matrix_intensity(self):
        """Multiply-accumulates of the matrix products alone, per weight byte."""
        return self.matrix_macs / self.weight_bytes

    @property
    def intensity(self):
        """All multiply-accumulates per weight byte."""
        return self.macs / self.weight_bytes


class Cost:
    """The cost model of one config whose tensors are stored in given formats.

    Parameters
    ----------
    config : Config
    formats : dict of str → str
        Format of every tensor, by its GGUF name.
    shapes : dict of str → tuple, optional
        Shape of every tensor, rows first; by default the config's own, which has no optional
        biases.
    """

    def __init__(self, config, formats, shapes=None):
        self.config = config
        self.tensors = []
        for name, shape in (shapes or config.tensors()).items():
            if name not in formats:
                raise BadArgument(f"Cost: no format given for the tensor {name}.")
            n_weights = math.prod(shape)
            nbytes = n_weights // shape[-1] * row_bytes(formats[name], shape[-1])
            self.tensors.append(TensorCost(name, tuple(shape), formats[name], n_weights, nbytes))

    @classmethod
    def of(cls, config, mix="F16"):
        """Cost of a config stored in one format, or in llama.cpp's mixture ``"Q4_K_M"``."""
        return cls(config, formats_of(config, mix))

    @classmethod
    def of_file(cls, path):
        """Cost of a GGUF file, from its header alone: no weight is read."""
        container = open_container(path)
        config = config_from_metadata(container.metadata, container.tensors)
        formats = {t.name: t.format.name for t in container.tensors.values()}
        return cls(config, formats, {t.name: t.shape for t in container.tensors.values()})

    @classmethod
    def of_model(cls, model):
        """Cost of a loaded model, from the formats that its file really uses."""
        weights = model.weights
        shapes = model.config.tensors() | _biases(weights)
        formats = dict.fromkeys(shapes, "F32")  # norms and biases are F32
        formats["token_embd.weight"] = weights.token_embd.format
        if "output.weight" in formats:
            formats["output.weight"] = weights.output.format
        for i, layer in enumerate(weights.layers):
            for role in MATRICES:
                formats[f"blk.{i}.{role}.weight"] = getattr(layer, role).format
        return cls(model.config, formats, shapes)

    def layer(self, i=0):
        """The tensors of layer `i`."""
        if not is_whole(i) or not 0 <= i < self.config.n_layer:
            raise BadArgument(
                f"Cost.layer: layer {i!r} does not exist; choose 0 to {self.config.n_layer - 1}."
            )
        return [t for t in self.tensors if t.layer == i]

    @property
    def output(self):
        """The tensor that scores the vocabulary: ``output.weight``, or the tied embedding."""
        by_name = {t.name: t for t in self.tensors}
        return by_name.get("output.weight", by_name["token_embd.weight"])

    @property
    def n_weights(self):
        return sum(t.n_weights for t in self.tensors)

    @property
    def nbytes(self):
        """Bytes of all tensors as stored."""
        return sum(t.nbytes for t in self.tensors)

    @property
    def layer_macs(self):
        """Multiply-accumulates of all layers' matrix products, for one token."""
        return sum(t.n_weights for t in self.tensors if t.layer is not None and t.is_matrix)

    @property
    def logit_macs(self):
        """Multiply-accumulates of the output matrix, for one row of logits."""
        return self.output.n_weights

    @property
    def bytes_per_pass(self):
        """Weight bytes that one pass streams: every tensor once, but of an untied embedding
        table only the one row that is looked up."""
        total = self.nbytes
        embedding = next(t for t in self.tensors if t.name == "token_embd.weight")
        if embedding is not self.output:
            total -= embedding.nbytes - embedding.nbytes // embedding.shape[0]
        return total

    def attention_macs(self, p):
        """Multiply-accumulates of attention for the token at position `p`: its query meets
        p + 1 keys, and its soft-max weights p + 1 values, in every head of every layer."""
        c = self.config
        _require("attention_macs", p=(p, 0))
        return 2 * c.n_layer * c.n_head * c.head_dim * (p + 1)

    def cache_bytes(self, n_positions, n_sequences=1, bytes_per_element=2, materialised=False):
        """Bytes of keys and values for `n_positions` cached tokens.

        `materialised` counts what an implementation holds that repeats each key/value head for
        all the query heads that share it, instead of reading the shared copy.
        """
        c = self.config
        _require("cache_bytes", n_positions=(n_positions, 0), n_sequences=(n_sequences, 0))
        heads = c.n_head if materialised else c.n_head_kv
        per_position = 2 * c.n_layer * heads * c.head_dim * bytes_per_element
        return per_position * n_positions * n_sequences

    def decode(self, p=0, n_sequences=1):
        """One pass that adds one token, at position `p`, to each of `n_sequences` requests."""
        _require("decode", p=(p, 0), n_sequences=(n_sequences, 1))
        return Phase(
            n_tokens=n_sequences,
            n_reads=1,
            matrix_macs=n_sequences * (self.layer_macs + self.logit_macs),
            attention_macs=n_sequences * self.attention_macs(p),
            weight_bytes=self.bytes_per_pass,
            cache_bytes=self.cache_bytes(p + 1, n_sequences),
        )

    def attention(self, p, n=1):
        """Attention alone, of `n` tokens from position `p` on that share one reading of the
        cache: its multiply-accumulates and bytes grow together with the context."""
        _require("attention", p=(p, 0), n=(n, 1))
        return Phase(
            n_tokens=n,
            n_reads=0,
            matrix_macs=0,
            attention_macs=sum(self.attention_macs(i) for i in range(p, p + n)),
            weight_bytes=0,
            cache_bytes=self.cache_bytes(p + n),
        )

    def prefill(self, n, batch=512, start=0, logits="last"):
        """A prompt of `n` tokens in batches of at most `batch`; the weights are streamed once a
        batch.  ``logits="last"`` scores the prompt's last row only, ``"all"`` every row."""
        _require("prefill", n=(n, 1), batch=(batch, 1), start=(start, 0))
        if logits not in ("last", "all"):
            raise BadArgument(f'Cost.prefill: logits={logits!r}; choose "last" or "all".')
        n_reads, rows = -(-n // batch), 1 if logits == "last" else n
        ends = [start + min(n, (i + 1) * batch) for i in range(n_reads)]
        return Phase(
            n_tokens=n,
            n_reads=n_reads,
            matrix_macs=n * self.layer_macs + rows * self.logit_macs,
            attention_macs=sum(self.attention_macs(p) for p in range(start, start + n)),
            weight_bytes=n_reads * self.bytes_per_pass,
            cache_bytes=sum(self.cache_bytes(end) for end in ends),
        )


def _require(where, **arguments):
    """Raise BadArgument unless each argument, given with its least value, is a whole number."""
    for name, (value, least) in arguments.items():
        if not is_whole(value) or value < least:
            raise BadArgument(
                f"Cost.{where}: {name} must be a whole number of at least {least}, not {value!r}."
            )


def _biases(weights):
    """Shape of every bias that a loaded model has, by GGUF name."""
    found = {}
    for i, layer in enumerate(weights.layers):
        for role, value in vars(layer).items():
            if role.endswith("_bias") and value is not None:
                found[f"blk.{i}.{role.removesuffix('_bias')}.bias"] = value.shape
    if weights.output_bias is not None:
        found["output.bias"] = weights.output_bias.shape
    return found


def formats_of(config, mix):
    """Format of every tensor when a file is made in `mix`.

    Vectors (norms, biases, frequency factors) stay F32.  ``"Q4_K_M"`` is llama.cpp's mixture
    (`llama_tensor_get_type` in src/llama-quant.cpp): Q4_K, but Q6_K for the matrix that scores
    the vocabulary, and for attn_v and ffn_down in the first and last eighth of the layers and in
    every third one between.

    Returns
    -------
    dict of str → str
    """
    if mix not in FORMATS and mix != "Q4_K_M":
        raise BadArgument(f"{mix!r} is not a format; choose Q4_K_M or one of {', '.join(FORMATS)}.")
    formats = {}
    for name, shape in config.tensors().items():
        if len(shape) == 1:
            formats[name] = "F32"
        elif mix != "Q4_K_M":
            formats[name] = mix
        else:
            formats[name] = _fitting(_q4_k_m(config, name), shape[-1])
    return formats


def _q4_k_m(config, name):
    if name == "output.weight" or (name == "token_embd.weight" and config.tied):
        return "Q6_K"
    parts = name.split(".")
    if parts[0] == "blk" and parts[2] in ("attn_v", "ffn_down"):
        i, n = int(parts[1]), config.n_layer
        if i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2:
            return "Q6_K"
        if parts[2] == "attn_v" and n == 80:  # 70B: eight query heads share attn_v
            return "Q5_K"
    return "Q4_K"


def _fitting(format, n_in):
    """llama.cpp's stand-in where rows are not a multiple of the 256-element block."""
    if n_in % FORMATS[format].block:
        return {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}[format]
    return format


def dense_weights(n_layer, d, f, n_vocab, gated=False):
    """Weights of a plain transformer, counted by the formula: 4·d² for q, k, v and output,
    2·d·f for the feed-forward layer (3·d·f when gated), and two tables of n_vocab · d.

    Examples
    --------
    >>> dense_weights(1, 16, 32, 16)
    2560
    """
    return n_layer * (4 * d * d + (3 if gated else 2) * d * f) + 2 * n_vocab * d
