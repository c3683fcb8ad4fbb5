"""From logits to the next id: top-k, top-p, temperature, and the draw.

The filters apply in this order, as llama.cpp's default chain does:

1. *top-k* keeps the k tokens with the largest logits; of equal logits the lower ids stay.
2. *top-p* takes the probabilities of those k (soft-max of their logits, at temperature 1) from
   the largest down, and keeps the shortest run whose sum reaches p.  At least one stays.
3. *temperature* divides the remaining logits by T; their soft-max is what is drawn from.
   T = 0 stands for its limit: the largest logit, and of equal ones the lowest id.
"""

import numpy as np

from ..arguments import is_whole
from ..errors import BadArgument


def log_probabilities(logits):
    """The model's own log-probabilities: logits less the log of the sum of their exponentials.

    Parameters
    ----------
    logits : ndarray of float32, shape (n_vocab,)

    Returns
    -------
    ndarray of float64, shape (n_vocab,)
        Natural logarithms.
    """
    x = checked(logits).astype(np.float64)  # (n_vocab,)
    x = x - x.max()
    with np.errstate(under="ignore"):
        return x - np.log(np.exp(x).sum())


def checked(logits):
    """The logits as a one-dimensional array; BadArgument for NaN, +inf, or nothing finite."""
    logits = np.asarray(logits)
    if logits.ndim != 1 or logits.size == 0:
        raise BadArgument(f"Logits must be one row (n_vocab,), not shape {logits.shape}.")
    top = logits.max()  # NaN if any is NaN
    if not np.isfinite(top):
        what = "NaN" if np.isnan(top) else f"{top} as the largest value"
        raise BadArgument(
            f"The logits hold {what}, so no next token can be chosen. A damaged model file, or a "
            "replaced step that overflowed, does this; walk the token to find the first bad step."
        )
    return logits


def ranked(logits, k=None):
    """Ids by falling logit, equal logits by rising id; the first k of them.

    Returns
    -------
    ndarray of int, shape (k,)
    """
    n = len(logits)
    k = n if k is None else min(k, n)
    if k < n:
        # Only the candidates need sorting: those at least as large as the k-th.
        threshold = np.partition(logits, n - k)[n - k]
        candidates = np.flatnonzero(logits >= threshold)  # in rising id
    else:
        candidates = np.arange(n)
    order = np.argsort(-logits[candidates], kind="stable")
    return candidates[order[:k]]


class Sampler:
    """How the next token is chosen.

    Parameters
    ----------
    temperature : float
        At least 0; 0 takes the most probable token (greedy).
    top_k : int
        Keep this many tokens; 0 keeps all.
    top_p : float
        Keep the most probable tokens up to this sum of probabilities, 0 < p <= 1; 1 keeps all.
    seed : int, optional
        The same seed gives the same draws.  None draws anew each time.

    Examples
    --------
    >>> Sampler(temperature=0).pick(np.array([1.0, 3.0, 3.0, -1.0], np.float32))
    1
    """

    def __init__(self, temperature=1.0, top_k=0, top_p=1.0, seed=None):
        if not _is_number(temperature) or not 0 <= temperature < np.inf:
            raise BadArgument(f"temperature must be a number of at least 0, not {temperature!r}.")
        if not is_whole(top_k) or top_k < 0:
            raise BadArgument(f"top_k must be a whole number, 0 for all tokens, not {top_k!r}.")
        if not _is_number(top_p) or not 0 < top_p <= 1:
            raise BadArgument(f"top_p must lie above 0 and be at most 1, not {top_p!r}.")
        if seed is not None and (not is_whole(seed) or seed < 0):
            raise BadArgument(f"seed must be a whole number of at least 0, or None, not {seed!r}.")
        self.temperature, self.top_k, self.top_p, self.seed = temperature, top_k, top_p, seed
        self.restart()

    @classmethod
    def greedy(cls):
        """Always the most probable token."""
        return cls(temperature=0.0)

    def __repr__(self):
        return (
            f"Sampler(temperature={self.temperature}, top_k={self.top_k}, top_p={self.top_p}, "
            f"seed={self.seed})"
        )

    def restart(self):
        """Start the sequence of draws again, as every generation does."""
        self._random = np.random.default_rng(self.seed)

    def distribution(self, logits):
        """What the next id is drawn from.

        Parameters
        ----------
        logits : ndarray of float32, shape (n_vocab,)

        Returns
        -------
        ids : ndarray of int, shape (m,)
            By falling probability, equal ones by rising id.
        probabilities : ndarray of float64, shape (m,)
            They sum to 1.
        """
        logits = checked(logits)
        if self.temperature == 0:
            return np.array([int(np.argmax(logits))]), np.ones(1)
        ids = ranked(logits, self.top_k or None)  # (m,)
        x = logits[ids].astype(np.float64)  # (m,)
        if self.top_p < 1:
            reached = np.cumsum(_softmax(x))  # (m,)
            keep = int(np.searchsorted(reached, self.top_p)) + 1
            ids, x = ids[:keep], x[:keep]
        return ids, _softmax(x, self.temperature)

    def pick(self, logits):
        """Choose the next id.

        Raises
        ------
        BadArgument
            If the logits hold NaN, or +inf, or nothing finite.
        """
        ids, p = self.distribution(logits)
        if len(ids) == 1:
            return int(ids[0])
        # The first id whose running sum exceeds a uniform number in [0, 1).
        drawn = int(np.searchsorted(np.cumsum(p), self._random.random(), side="right"))
        return int(ids[min(drawn, np.count_nonzero(p) - 1)])


def _softmax(x, temperature=1.0):
    """Soft-max in float64 of (x - max) / temperature; x is sorted, its first is the largest."""
    with np.errstate(over="ignore", under="ignore"):
        p = np.exp((x - x[0]) / temperature)
    return p / p.sum()


def _is_number(x):
    return is_whole(x) or isinstance(x, float | np.floating)
