"""Trace: a forward pass recorded, its steps by name, layer and position; what views draw."""

import math

import numpy as np

from ..errors import BadArgument, TokenizerProblem
from . import steps
from .backends import UBATCH
from .generate import piece

MAX_BYTES = 512 * 2**20
ATTENTION = ("scores", "probabilities")


class Trace:
    """Every step of a text's forward pass.

    Make one with `Trace.record`.  It holds one float32 array a step and layer; `nbytes` says
    how much that is.

    Attributes
    ----------
    ids : list of int, T of them
    tokens : list of bytes
        The piece of each id.
    config : Config
    numerics : Numerics
    names : list of (name, layer)
        The steps recorded, in order of computation; layer None outside the layers.
    """

    def __init__(self, ids, tokens, config, numerics, values):
        self.ids, self.tokens, self.config, self.numerics = ids, tokens, config, numerics
        self._values = values
        self.names = list(values)

    def __len__(self):
        return len(self.ids)

    def __repr__(self):
        return f"Trace({len(self)} tokens, {len(self.names)} steps, {self.nbytes:,} bytes)"

    @property
    def nbytes(self):
        return sum(a.nbytes for a in self._values.values())

    @classmethod
    def record(cls, model, ids, names=None, max_bytes=MAX_BYTES):
        """Run a prompt on the reference backend and keep its steps.

        The pass is the same one that `prefill` runs, so the logits are the same bits.

        Parameters
        ----------
        model : Llama
        ids : sequence of int
            T of them.  A cache of exactly T positions is made for the recording.
        names : collection of str, optional
            Steps to keep, such as ``["probabilities"]``; all by default.
        max_bytes : int
            Refuse, before computing anything, to keep more than this.  All steps of T tokens
            take what `size` says, for SmolLM2 about 1.7 MB a token.

        Raises
        ------
        BadArgument
            If the record would exceed `max_bytes`, or a name is unknown.
        """
        ids = model.check_ids(ids)
        keep = None if names is None else {steps.spec(n).name for n in names}
        expected = cls.size(model, len(ids), keep)
        if expected > max_bytes:
            raise BadArgument(
                f"Recording {len(ids)} tokens would keep {expected:,} bytes, more than "
                f"max_bytes={max_bytes:,}. Record fewer tokens, or only the steps you need with "
                "names=[...]."
            )
        cache = model.new_cache(len(ids))
        parts = {}
        for start in range(0, len(ids), UBATCH):
            for step in model.walk(ids[start : start + UBATCH], cache):
                if keep is None or step.name in keep:
                    value = step.value
                    if step.name in ATTENTION:  # later positions are hidden, not computed
                        value = np.pad(value, ((0, 0), (0, 0), (0, len(ids) - value.shape[2])))
                    parts.setdefault((step.name, step.layer), []).append(value)
        values = {}
        for key, arrays in parts.items():
            values[key] = np.concatenate(arrays) if len(arrays) > 1 else arrays[0].copy()
            values[key].flags.writeable = False
        return cls(ids, pieces(model, ids), model.config, model.numerics, values)

    @staticmethod
    def size(model, n_tokens, names=None):
        """Bytes that a record of `n_tokens` tokens takes."""
        return sum(
            4 * n_tokens * math.prod(spec.shape(model.config, n_tokens - 1))
            for spec, _ in model.plan()
            if names is None or spec.name in names
        )

    def all(self, name, layer=None):
        """A step's value for every position, float32 (T, …)."""
        key = (name, layer)
        if key not in self._values:
            spec = steps.spec(name)
            if spec.per_layer and layer is None:
                raise BadArgument(f"Step {name!r} exists in every layer; say which: layer=0.")
            raise BadArgument(f"Step {name!r} of layer {layer} was not recorded; see trace.names.")
        return self._values[key]

    def value(self, name, layer=None, position=-1):
        """A step's value at one position, as `walk` would yield it.

        Returns
        -------
        ndarray of float32, read-only
            Shape ``spec.shape(config, position)``.
        """
        values = self.all(name, layer)
        if not -len(self) <= position < len(self):
            raise BadArgument(f"Position {position} is not among the {len(self)} recorded.")
        position %= len(self)
        value = values[position]
        return value[:, : position + 1] if name in ATTENTION else value

    def attention(self, layer, stage="probabilities"):
        """Who attends to whom in one layer.

        Parameters
        ----------
        layer : int
        stage : {"probabilities", "scores"}

        Returns
        -------
        ndarray of float32, shape (n_head, T, T)
            Row: the token that attends; column: the token attended to.  Probabilities are 0
            above the diagonal and each row sums to 1.  Scores are divided by √head_dim, and
            -inf above the diagonal.
        """
        if stage not in ATTENTION:
            raise BadArgument(f'stage must be "probabilities" or "scores", not {stage!r}.')
        values = self.all(stage, layer).swapaxes(0, 1)  # (n_head, T, T)
        if stage == "probabilities":
            return values
        scale = np.float32(1) / np.sqrt(np.float32(self.config.head_dim))
        hidden = np.triu(np.ones((len(self), len(self)), bool), 1)  # (T, T)
        return np.where(hidden, np.float32(-np.inf), values * scale)


def pieces(model, ids):
    """Each id's bytes; ``#id`` for a model without a usable vocabulary."""
    try:
        tokenizer = model.tokenizer
    except TokenizerProblem:
        return [f"#{id}".encode() for id in ids]
    return [piece(tokenizer, id) for id in ids]
