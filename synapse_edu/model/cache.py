"""The cache: keys, values and ids of the tokens so far.

Attention reaches back to every earlier token through their keys and values, so these are kept
and not computed again.  The memory grows by one row per layer and token.
"""

import numpy as np

from ..arguments import is_whole
from ..errors import BadArgument, ContextFull


class KVCache:
    """Keys and values of one sequence.

    Parameters
    ----------
    config : Config
    n_ctx : int
        Most positions that the cache can hold.
    dtype : {"float16", "float32"}
        Storage of keys and values.

    Attributes
    ----------
    k, v : ndarray, shape (n_layer, n_head_kv, n_ctx, head_dim)
        Rows from `n` on are unused.
    n : int
        Positions used; also ``len(cache)``.
    ids : list of int
        The token at each used position.
    n_ctx : int
    nbytes : int
        Bytes set aside for all n_ctx positions.
    nbytes_used : int
        Bytes of the positions used: 2 · n_layer · n_head_kv · head_dim · itemsize · n.
    n_clean : int
        Positions before the first one whose pass had a step replaced.  Only these may be
        reused for another prompt.
    """

    def __init__(self, config, n_ctx, dtype="float16", owner=None):
        if not is_whole(n_ctx) or n_ctx < 1:
            raise BadArgument(f"n_ctx must be a whole number of at least 1, not {n_ctx!r}.")
        shape = (config.n_layer, config.n_head_kv, int(n_ctx), config.head_dim)
        self.n_ctx = int(n_ctx)
        try:
            self.k = np.zeros(shape, dtype)  # (n_layer, n_head_kv, n_ctx, head_dim)
            self.v = np.zeros(shape, dtype)  # (n_layer, n_head_kv, n_ctx, head_dim)
        except (MemoryError, ValueError):  # ValueError: more than an array can index
            raise BadArgument(
                f"A cache of {n_ctx:,} positions does not fit into memory; give a smaller n_ctx."
            ) from None
        self.ids, self.owner = [], owner
        self.n_clean = 0
        self._ticket = None

    def __len__(self):
        return len(self.ids)

    @property
    def n(self):
        return len(self.ids)

    @property
    def nbytes(self):
        return self.k.nbytes + self.v.nbytes

    @property
    def nbytes_used(self):
        return self.nbytes // self.n_ctx * self.n

    def __repr__(self):
        return (
            f"KVCache({self.n} of {self.n_ctx} positions, {self.k.dtype}, "
            f"{self.nbytes_used:,} of {self.nbytes:,} bytes)"
        )

    def truncate(self, n):
        """Forget every position from `n` on: the next token goes to position n."""
        if not is_whole(n) or not 0 <= n <= self.n:
            raise BadArgument(
                f"truncate({n!r}): the cache holds {self.n} positions; give a number from 0 to "
                f"{self.n}."
            )
        del self.ids[n:]
        self.n_clean = min(self.n_clean, int(n))
        self._ticket = None

    def require(self, n_new, after=None):
        """Raise ContextFull unless `n_new` positions fit after the first `after` (default: n)."""
        after = self.n if after is None else after
        if after + n_new > self.n_ctx:
            used = f" after the {after} already there" if after else ""
            raise ContextFull(
                f"{n_new} tokens{used} do not fit into a context of {self.n_ctx} positions. "
                "Shorten the text, truncate the cache, or make a cache with a larger n_ctx."
            )

    def check(self, config, dtype, owner=None):
        """Raise BadArgument unless this cache has a model's shape and storage, and is its own."""
        want = (config.n_layer, config.n_head_kv, self.n_ctx, config.head_dim)
        if any(
            x.shape != want or x.dtype != np.dtype(dtype) or not x.flags.c_contiguous
            for x in (self.k, self.v)
        ):
            raise BadArgument(
                f"This cache is {self.k.dtype} of shape {self.k.shape}; the model needs {dtype} "
                f"of shape {want}. Make one with model.new_cache()."
            )
        if self.owner is not None and owner is not None and self.owner != owner:
            raise BadArgument(
                "This cache holds another model's keys and values. Make one with model.new_cache()."
            )

    def begin(self, n_new):
        """Start a pass over `n_new` tokens; the ticket is needed to store and to commit.

        A pass that is given up leaves only unused rows behind.  A later one makes its ticket
        invalid, so that two passes never write the same rows unnoticed.
        """
        start = self.n  # read once: another thread may add a token meanwhile
        self.require(n_new, start)
        self._ticket = ticket = (object(), start, n_new)
        return ticket

    def start_of(self, ticket):
        """The position at which a pass begins, or BadArgument if its ticket is not valid now."""
        self._valid(ticket)
        return ticket[1]

    def store(self, ticket, layer, k, v):
        """Write this pass's keys and values, (n_new, n_head_kv, head_dim), rounding them.

        Returns views of all keys and values so far, (n_head_kv, n + n_new, head_dim).
        """
        start = self.start_of(ticket)
        stop = start + ticket[2]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # beyond 65504 float16 is infinite, as in llama.cpp
            self.k[layer, :, start:stop] = k.swapaxes(0, 1)
            self.v[layer, :, start:stop] = v.swapaxes(0, 1)
        return self.k[layer, :, :stop], self.v[layer, :, :stop]

    def commit(self, ticket, ids, edited=False):
        """Count the pass's positions as used."""
        self._valid(ticket)
        if not edited and self.n_clean == self.n:
            self.n_clean += len(ids)
        self.ids.extend(int(i) for i in ids)
        self._ticket = None

    def _valid(self, ticket):
        if ticket is not self._ticket:
            raise BadArgument(
                "Another pass was started on this cache, or it was truncated, while this walk "
                "was under way. Give each walk its own cache, or finish one before the next."
            )
