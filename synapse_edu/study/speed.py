"""Seconds of the two phases, and of one matrix product: a stopwatch around the real thing."""

import statistics
import time

import numpy as np

from ..errors import BadArgument
from ..formats.matrix import Matrix
from ..numerics import Numerics


class Ours:
    """A loaded model with one cache, as a `Stopwatch` runs it.

    Parameters
    ----------
    model : model.llama.Llama
    n_ctx : int, optional

    Attributes
    ----------
    n : int
        Positions used.
    """

    def __init__(self, model, n_ctx=None):
        self.model, self.cache = model, model.new_cache(n_ctx)

    @property
    def n(self):
        return self.cache.n

    def eval(self, ids):
        """Put ids at the next positions; the last row's logits."""
        if len(ids) == 1:
            return self.model.decode(ids[0], self.cache)
        return self.model.prefill(ids, self.cache)

    def truncate(self, n):
        self.cache.truncate(n)


class Stopwatch:
    """Times the prefill and the decoding of any engine with ``eval``, ``truncate`` and ``n``.

    Parameters
    ----------
    engine : Ours, libllama.LibLlama
    n_vocab, n_ctx : int
        The ids are the same for every engine; they go through the vocabulary in steps.
    """

    def __init__(self, engine, n_vocab, n_ctx):
        self.engine = engine
        self.ids = [1 + 7919 * i % (n_vocab - 1) for i in range(n_ctx)]

    @classmethod
    def of(cls, model, n_ctx=None):
        """A stopwatch for a loaded model."""
        engine = Ours(model, n_ctx)
        return cls(engine, model.config.n_vocab, engine.cache.n_ctx)

    def prefill(self, n):
        """Seconds for a prompt of n tokens in an empty cache."""
        self.engine.truncate(0)
        start = time.perf_counter()
        self.engine.eval(self.ids[:n])
        return time.perf_counter() - start

    def fill(self, depth):
        """Bring the cache to `depth` positions, whatever was in it."""
        if self.engine.n > depth:
            self.engine.truncate(depth)
        if self.engine.n < depth:
            self.engine.eval(self.ids[self.engine.n : depth])

    def decode(self, n, depth=0):
        """Seconds for n tokens, one after the other, from position `depth` on."""
        self.engine.truncate(depth)
        start = time.perf_counter()
        for id in self.ids[depth : depth + n]:
            self.engine.eval([id])
        return time.perf_counter() - start

    def prefill_rate(self, n, repeats=3):
        """Tokens a second of a prompt of n tokens: the median, after a run that is not counted."""
        self.prefill(n)
        return n / statistics.median(self.prefill(n) for _ in range(repeats))

    def decode_rate(self, n=16, depth=0, repeats=3):
        """Tokens a second of n tokens after `depth` others: the median, as above."""
        self.fill(depth)
        self.decode(n, depth)
        return n / statistics.median(self.decode(n, depth) for _ in range(repeats))


def fast_matmul():
    """The compiled matrix product, or the reference's where nothing can be compiled."""
    try:
        from ..ops.fast.matmul import matmul
    except ImportError:
        from ..ops.reference.matmul import matmul
    return matmul


def product_seconds(format, batches, n_out=2048, n_in=1024, repeats=40, matmul=None, seed=0):
    """Seconds of one product of a random matrix with batches of activation rows, on one thread.

    Parameters
    ----------
    format : str
    batches : sequence of int
        Rows of the batches.
    n_out, n_in, repeats, seed : int
    matmul : callable, optional
        By default the compiled one.

    Returns
    -------
    list of (int, float)
        Batch and its least seconds: what else the machine does can only add.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((max(batches), n_in), np.float32)  # (largest batch, n_in)
    weight = Matrix.from_float32(rng.standard_normal((n_out, n_in), np.float32), format)
    matmul, numerics, found = matmul or fast_matmul(), Numerics.named("llama.cpp"), []
    for n in batches:
        matmul(weight, x[:n], numerics)  # compile, repack
        runs = []
        for _ in range(repeats):
            start = time.perf_counter()
            matmul(weight, x[:n], numerics)
            runs.append(time.perf_counter() - start)
        found.append((n, min(runs)))
    return found


def line_through(points):
    """Least-squares line through (n, seconds): what is paid once, and what each row adds.

    Returns
    -------
    (float, float)
        Intercept and slope, in seconds.

    Examples
    --------
    >>> once, each = line_through([(1, 3.0), (2, 4.0), (3, 5.0)])
    >>> round(once, 6), round(each, 6)
    (2.0, 1.0)
    """
    if len({n for n, _ in points}) < 2:
        raise BadArgument("A line needs two different batch sizes.")
    slope, intercept = np.polyfit(*zip(*points, strict=True), 1)
    return float(intercept), float(slope)


def step_seconds(model, ids, repeats=3):
    """Where the time of a pass goes: seconds by the name of the step, on the reference backend.

    The walk yields after each step, so the time between two of them is that of the later one.
    Steps of the same name in different layers are added; the least of `repeats` walks counts.
    """
    fewest = {}
    for _ in range(repeats):
        last = time.perf_counter()
        for step in model.walk(ids, model.new_cache(len(ids))):
            spent = time.perf_counter() - last
            key = (step.name, step.layer)
            fewest[key] = min(spent, fewest.get(key, spent))
            last = time.perf_counter()
    found = {}
    for (name, _), seconds in fewest.items():
        found[name] = found.get(name, 0.0) + seconds
    return found
