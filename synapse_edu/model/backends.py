"""Backends: who computes the logits.

A backend offers two methods and nothing else:

* ``prefill(ids, cache, rows)`` → float32 (len(rows), n_vocab): put ids at the cache's next
  positions, and return the logits of those listed in `rows` (rising, without repeats);
* ``decode(id, cache)`` → float32 (n_vocab,): the same for one id.

Both count the positions as used in the cache when they are done.  The arguments have been
checked by `Llama`.
"""

import sys

import numpy as np

from ..errors import BadArgument
from . import walk

UBATCH = 512  # tokens computed together; llama.cpp cuts prompts at the same number


class Reference:
    """The walk, run to its end: NumPy, meant to be read."""

    name = "reference"

    def __init__(self, weights, config, numerics, n_threads=None):
        self.weights, self.config, self.numerics = weights, config, numerics

    def prefill(self, ids, cache, rows):
        parts = []
        for start in range(0, len(ids), UBATCH):
            part = ids[start : start + UBATCH]
            wanted = [r - start for r in rows if start <= r < start + len(part)]
            steps = walk.forward(self.weights, self.config, self.numerics, part, cache, rows=wanted)
            parts.append(walk.run(steps))
        return np.concatenate(parts)  # (len(rows), n_vocab)

    def decode(self, id, cache):
        steps = walk.forward(self.weights, self.config, self.numerics, [id], cache, single=True)
        return walk.run(steps)  # (n_vocab,)


LARGE = 20_000_000  # bytes of weights from which compiling is worth its seconds
NAMES = ("reference", "fast")


def make(name, weights, config, numerics, n_threads=None):
    """The backend called `name`.

    None takes the fast one for a model of 20 MB or more, where it computes the Numerics, and the
    reference otherwise: a tiny model is done before the first function is compiled.
    """
    if name not in (None, *NAMES):
        raise BadArgument(
            f"backend {name!r} is not known; choose one of {', '.join(map(repr, NAMES))}."
        )
    if name == "reference" or (name is None and _size(weights) < LARGE):
        return Reference(weights, config, numerics, n_threads)
    try:
        from .fast import Fast, serves
    except ImportError as problem:  # no Numba for this Python
        trouble = f"The fast backend cannot be loaded ({problem})"
    else:
        if serves(numerics):
            return Fast(weights, config, numerics, n_threads)
        trouble = f"The fast backend does not compute Numerics {numerics.name!r}"
    if name == "fast":
        print(f"{trouble}; the reference does, more slowly.", file=sys.stderr)
    return Reference(weights, config, numerics, n_threads)


def _size(weights):
    every = (vars(layer).values() for layer in weights.layers)
    return sum(x.nbytes for values in every for x in values if x is not None)
