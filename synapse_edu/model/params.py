"""ModelArgs: the official names of the numbers that define a model, and ``params.json``.

Source: ``ModelArgs`` and ``FeedForward`` in llama/model.py, ``Llama.build`` in
llama/generation.py (Llama 3, April 2024).
"""

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

from ..errors import BadArgument, FileProblem, UnsupportedModel

# A layer's parameters: GGUF's name → the official one.
OFFICIAL = {
    "attn_norm": "attention_norm", "attn_q": "attention.wq", "attn_k": "attention.wk",
    "attn_v": "attention.wv", "attn_output": "attention.wo", "ffn_norm": "ffn_norm",
    "ffn_gate": "feed_forward.w1", "ffn_down": "feed_forward.w2", "ffn_up": "feed_forward.w3",
}  # fmt: skip
LONGEST = 8192  # what the official wrapper of April 2024 accepts


@dataclass(frozen=True)
class ModelArgs:
    """The official names and defaults.

    Attributes
    ----------
    dim, n_layers, n_heads : int
        Width of the residual stream; layers; query heads.
    n_kv_heads : int or None
        Key/value heads; None means as many as query heads.
    vocab_size : int
        −1 in a ``params.json`` leaves it to the tokenizer.
    multiple_of : int
    ffn_dim_multiplier : float or None
        These two decide the width of the feed-forward layer, see `ffn_dim`.
    norm_eps, rope_theta : float
    max_batch_size, max_seq_len : int
        Rows and positions that the cache is made for.
    """

    dim: int = 4096
    n_layers: int = 32
    n_heads: int = 32
    n_kv_heads: int | None = None
    vocab_size: int = -1
    multiple_of: int = 256
    ffn_dim_multiplier: float | None = None
    norm_eps: float = 1e-5
    rope_theta: float = 500000.0
    max_batch_size: int = 32
    max_seq_len: int = 2048

    @classmethod
    def from_params_json(cls, path, **changes):
        """Read ``params.json``: what stands there counts, not the defaults of the class.

        Raises
        ------
        FileProblem
            If the file is not such a file.
        UnsupportedModel
            If it asks for something that the pass of April 2024 does not compute.
        """
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise FileProblem(f"{path}: this is not a readable params.json ({error}).") from None
        if not isinstance(found, dict) or not {"dim", "n_layers", "n_heads"} <= set(found):
            raise FileProblem(f"{path}: dim, n_layers and n_heads are needed.")
        if found.pop("use_scaled_rope", False):
            raise UnsupportedModel(
                f"{path}: use_scaled_rope belongs to Llama 3.1 and later. The pass of April 2024 "
                "does not scale rotations; convert the model to GGUF and open it with load()."
            )
        unknown = sorted(set(found) - {f.name for f in fields(cls)})
        if unknown:
            raise UnsupportedModel(
                f"{path}: the official pass has no setting {', '.join(map(repr, unknown))}."
            )
        try:
            return cls(**found | changes).check()
        except BadArgument as error:
            raise FileProblem(f"{path}: {error}") from None

    @classmethod
    def from_config(cls, config, **changes):
        """The official numbers of a Config, with its width of the feed-forward layer."""
        plain = cls(dim=config.n_embd).ffn_dim_before_rounding
        if plain <= config.n_ff:  # rounding up to n_ff gives n_ff
            ffn = {"multiple_of": config.n_ff}
        else:
            ffn = {"multiple_of": 1, "ffn_dim_multiplier": (config.n_ff + 0.5) / plain}
        return cls(
            dim=config.n_embd, n_layers=config.n_layer, n_heads=config.n_head,
            n_kv_heads=config.n_head_kv, vocab_size=config.n_vocab, norm_eps=config.rms_eps,
            rope_theta=config.rope.freq_base, **ffn | changes,
        )  # fmt: skip

    @property
    def kv_heads(self):
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_dim(self):
        return self.dim // self.n_heads

    @property
    def ffn_dim(self):
        """Width of the feed-forward layer: 2/3 of 4·dim, times the multiplier, rounded up."""
        blocks = -(-self.ffn_dim_before_rounding // self.multiple_of)
        return self.multiple_of * blocks

    @property
    def ffn_dim_before_rounding(self):
        width = int(2 * (4 * self.dim) / 3)
        return width if self.ffn_dim_multiplier is None else int(self.ffn_dim_multiplier * width)

    def shapes(self):
        """(official name, shape) of every tensor; a matrix is (n_out, n_in)."""
        d, kv, v, f = self.dim, self.kv_heads * self.head_dim, self.vocab_size, self.ffn_dim
        yield "tok_embeddings.weight", (v, d)
        for i in range(self.n_layers):
            at = f"layers.{i}."
            for name, shape in (("wq", (d, d)), ("wk", (kv, d)), ("wv", (kv, d)), ("wo", (d, d))):
                yield f"{at}attention.{name}.weight", shape
            for name, shape in (("w1", (f, d)), ("w2", (d, f)), ("w3", (f, d))):
                yield f"{at}feed_forward.{name}.weight", shape
            yield at + "attention_norm.weight", (d,)
            yield at + "ffn_norm.weight", (d,)
        yield "norm.weight", (d,)
        yield "output.weight", (v, d)

    def check(self):
        """Return self, or raise BadArgument for numbers that no model can have."""
        for field in fields(self):
            value, whole = getattr(self, field.name), field.type in (int, int | None)
            if value is None and field.default is None:
                continue
            kind = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
                wanted = "a whole number" if whole else "a number"
                raise BadArgument(f"{field.name} must be {wanted}, not {value!r}.")
            if value <= 0 and (field.name, value) != ("vocab_size", -1):
                raise BadArgument(f"{field.name} must be more than 0, not {value!r}.")
        if self.max_seq_len > LONGEST:
            raise BadArgument(
                f"max_seq_len must be between 1 and {LONGEST}, not {self.max_seq_len}. The code "
                f"of April 2024 stops at {LONGEST}; Llama 3.1's 128K came later."
            )
        if self.dim % self.n_heads or self.n_heads % self.kv_heads or self.head_dim % 2:
            raise BadArgument(
                "dim must be a multiple of n_heads, n_heads of n_kv_heads, and a head must hold "
                "an even number of elements."
            )
        return self
