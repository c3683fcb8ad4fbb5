"""Backends: who computes the logits.

A backend offers two methods and nothing else:

* ``prefill(ids, cache, rows)`` → float32 (len(rows), n_vocab): put ids at the cache's next
  positions, and return the logits of those listed in `rows` (rising, without repeats);
* ``decode(id, cache)`` → float32 (n_vocab,): the same for one id.

Both count the positions as used in the cache when they are done.  The arguments have been
checked by `Llama`.
"""

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


BACKENDS = {"reference": Reference}


def make(name, weights, config, numerics, n_threads=None):
    """The backend called `name`; None takes the default."""
    name = "reference" if name is None else name
    if name not in BACKENDS:
        raise BadArgument(
            f"backend {name!r} is not known; choose one of {', '.join(map(repr, BACKENDS))}."
        )
    return BACKENDS[name](weights, config, numerics, n_threads)
