"""Config: the numbers that define one model; every shape derives from it."""

from dataclasses import dataclass, field, fields
from dataclasses import replace as _replace

from .errors import BadArgument


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

    def replace(self, **changes):
        """A copy with some numbers changed."""
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise BadArgument(f"Config has no field {name!r}; it has {', '.join(sorted(known))}.")
        return _replace(self, **changes)
