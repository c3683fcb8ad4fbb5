"""Config: the numbers that define one model; every shape derives from it."""

import html
import math
from dataclasses import dataclass, field, fields
from dataclasses import replace as _replace

from .errors import BadArgument, did_you_mean


@dataclass(frozen=True)
class Rope:
    """How positions become rotations.

    Attributes
    ----------
    freq_base : float
        θ of the schedule: pair i turns by base^(-2i/n_rot) a position.
    n_rot : int
        Elements of a head that are rotated; all of them in the families here.
    layout : {"normal", "neox"}
        Pairs are (2i, 2i+1) or (i, i + n_rot/2).
    scaling : {"none", "linear", "yarn"}
    factor : float
        Positions are divided by this (linear, and YaRN's slow pairs); 1 means unscaled.
    n_ctx_orig : int
        Context length before it was extended, in tokens.
    attn_factor, beta_fast, beta_slow, yarn_log_multiplier : float
        YaRN's parameters, as the file gives them.
    """

    freq_base: float = 10000.0
    n_rot: int = 0
    layout: str = "normal"
    scaling: str = "none"
    factor: float = 1.0
    n_ctx_orig: int = 0
    attn_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    yarn_log_multiplier: float = 0.0


@dataclass(frozen=True)
class Config:
    """The numbers that define one Llama-family model.

    Attributes
    ----------
    architecture : {"llama", "qwen2", "mistral3"}
    n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab : int
        Layers; width of the residual stream; query heads; key/value heads; width of a head;
        width of the feed-forward layer; tokens in the vocabulary.
    n_ctx_train : int
        Longest sequence of training, in tokens.
    rms_eps : float
        ε of RMSNorm.
    tied : bool
        Whether the embedding table also scores the output.
    rope : Rope
    rope_freqs : bool
        Whether the file holds a frequency factor for each pair.
    attn_temperature_scale : float
        Mistral 3: q is multiplied by 1 + scale·ln(⌊p/N⌋ + 1); 0 means never.
    name : str
    """

    architecture: str
    n_layer: int
    n_embd: int
    n_head: int
    n_head_kv: int
    head_dim: int
    n_ff: int
    n_vocab: int
    n_ctx_train: int
    rms_eps: float = 1e-5
    tied: bool = False
    rope: Rope = field(default_factory=Rope)
    rope_freqs: bool = False
    attn_temperature_scale: float = 0.0
    name: str = ""

    @property
    def n_group(self):
        """Query heads that share one key/value head."""
        return self.n_head // self.n_head_kv

    @property
    def n_embd_head(self):
        """Width of all query heads together: n_head · head_dim."""
        return self.n_head * self.head_dim

    @property
    def n_embd_kv(self):
        """Width of all key (or value) heads together: n_head_kv · head_dim."""
        return self.n_head_kv * self.head_dim

    @classmethod
    def named(cls, name):
        """The published configuration `name`, such as ``"llama-3.2-1b"``; no file is needed.

        Raises
        ------
        BadArgument
            For an unknown name; the message lists the known ones.
        """
        from .config_named import SIZES

        if name not in SIZES:
            raise BadArgument(
                f"No configuration is called {name!r}.{did_you_mean(name, SIZES)} "
                f"Names: {', '.join(SIZES)}."
            )
        n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, eps, tied, more = SIZES[name]
        architecture = more.get("architecture", "llama")
        rope = Rope(
            freq_base=more["freq_base"],
            n_rot=head_dim,
            layout="neox" if architecture == "qwen2" else "normal",
            scaling="yarn" if "yarn" in more else "none",
            **({"n_ctx_orig": more["n_ctx"]} | more.get("yarn", {})),
        )
        return cls(
            architecture, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab,
            more["n_ctx"],
            rms_eps=eps, tied=tied, rope=rope, rope_freqs=more.get("rope_freqs", False), name=name,
            attn_temperature_scale=more.get("attn_temperature_scale", 0.0),
        )  # fmt: skip

    def layer_tensors(self):
        """Shape of each tensor of one layer, by role, in NumPy order (rows first)."""
        d, q, kv, ff = self.n_embd, self.n_embd_head, self.n_embd_kv, self.n_ff
        shapes = {
            "attn_norm.weight": (d,),
            "attn_q.weight": (q, d),
            "attn_k.weight": (kv, d),
            "attn_v.weight": (kv, d),
        }
        if self.architecture == "qwen2":
            shapes |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        return shapes | {
            "attn_output.weight": (d, q),
            "ffn_norm.weight": (d,),
            "ffn_gate.weight": (ff, d),
            "ffn_up.weight": (ff, d),
            "ffn_down.weight": (d, ff),
        }

    def tensors(self):
        """Shape of every tensor, by its GGUF name, in the order of computation."""
        shapes = {"token_embd.weight": (self.n_vocab, self.n_embd)}
        if self.rope_freqs:
            shapes["rope_freqs.weight"] = (self.rope.n_rot // 2,)
        for i in range(self.n_layer):
            shapes |= {f"blk.{i}.{role}": shape for role, shape in self.layer_tensors().items()}
        shapes["output_norm.weight"] = (self.n_embd,)
        if not self.tied:
            shapes["output.weight"] = (self.n_vocab, self.n_embd)
        return shapes

    @property
    def n_params(self):
        """Learned numbers in all tensors; the frequency factors are computed, not learned."""
        layer = sum(math.prod(shape) for shape in self.layer_tensors().values())
        tables = (1 if self.tied else 2) * self.n_vocab * self.n_embd
        return tables + self.n_layer * layer + self.n_embd  # and the last norm

    def rows(self):
        """(symbol, number, meaning) for each number, as the table shows them."""
        rope = f"base {self.rope.freq_base:,.0f}, {self.rope.layout} pairs"
        if self.rope.scaling != "none":
            rope += f", {self.rope.scaling} ×{self.rope.factor:g}"
        if self.rope_freqs:
            rope += ", a factor for each pair"
        temperature = f"1 + {self.attn_temperature_scale:g}·ln(⌊p/{self.rope.n_ctx_orig:,}⌋ + 1)"
        rows = [
            ("n_layer", f"{self.n_layer}", "layers"),
            ("n_embd", f"{self.n_embd:,}", "width of the residual stream"),
            ("n_head", f"{self.n_head}", "query heads"),
            (
                "n_head_kv",
                f"{self.n_head_kv}",
                f"key/value heads, each for {self.n_group} query heads",
            ),
            ("head_dim", f"{self.head_dim}", "width of a head"),
            ("n_ff", f"{self.n_ff:,}", "width of the feed-forward layer"),
            ("n_vocab", f"{self.n_vocab:,}", "tokens in the vocabulary"),
            ("n_ctx_train", f"{self.n_ctx_train:,}", "longest sequence of training"),
            ("rms_eps", f"{self.rms_eps:g}", "ε of RMSNorm"),
            ("rope", rope, "rotation of queries and keys"),
            ("tied", "yes" if self.tied else "no", "the embedding table also scores the output"),
            ("n_params", f"{self.n_params:,}", "learned numbers"),
        ]
        if self.attn_temperature_scale:
            rows.insert(-2, ("temperature", temperature, "what q is multiplied by at position p"))
        return rows

    def __str__(self):
        rows = self.rows()
        wide = max(len(number) for _, number, _ in rows)
        title = f"{self.name or 'model'} ({self.architecture})"
        lines = [f"{symbol:12} {number:>{wide}}  {meaning}" for symbol, number, meaning in rows]
        shapes = [f"  {name:20} {shape}" for name, shape in self.layer_tensors().items()]
        return "\n".join([title, *lines, "tensors of one layer (rows, elements per row)", *shapes])

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td><code>{symbol}</code></td><td>{html.escape(number)}</td><td>{meaning}</td></tr>"
            for symbol, number, meaning in self.rows()
        )
        title = html.escape(f"{self.name or 'model'} ({self.architecture})")
        return f"<table><caption>{title}</caption>{rows}</table>"

    def replace(self, **changes):
        """A copy with some numbers changed."""
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise BadArgument(
                    f"Config has no field {name!r}; it has {', '.join(sorted(known))}."
                )
        return _replace(self, **changes)
