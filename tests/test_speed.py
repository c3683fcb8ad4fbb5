"""The stopwatch: what it runs, and that its line and its shares are right."""

import numpy as np
import pytest

from synapse_edu.errors import BadArgument
from synapse_edu.model.load import load
from synapse_edu.ops.reference.matmul import matmul as reference_matmul
from synapse_edu.study import speed
from synapse_edu.study.speed import Stopwatch, line_through, product_seconds, step_seconds


class Engine:
    """Keeps what it was asked to evaluate."""

    def __init__(self):
        self.n, self.sizes, self.last = 0, [], None

    def eval(self, ids):
        self.n += len(ids)
        self.sizes.append(len(ids))
        self.last = ids

    def truncate(self, n):
        assert n <= self.n
        self.n = n


def test_what_is_timed():
    engine = Engine()
    watch = Stopwatch(engine, n_vocab=100, n_ctx=64)
    assert all(0 < id < 100 for id in watch.ids) and len(set(watch.ids)) > 50
    assert watch.prefill(8) >= 0 and engine.sizes == [8] and engine.n == 8
    watch.fill(20)
    assert engine.sizes == [8, 12] and engine.last == watch.ids[8:20]
    watch.fill(6)
    assert engine.n == 6
    watch.fill(20)
    assert watch.decode(3, depth=20) >= 0
    assert engine.sizes[-3:] == [1, 1, 1] and engine.n == 23


def test_rates_of_a_model():
    watch = Stopwatch.of(load("built-in", backend="reference"), n_ctx=32)
    assert 1 < watch.prefill_rate(8, repeats=1) < 1e6
    assert 1 < watch.decode_rate(2, depth=8, repeats=1) < 1e6
    assert watch.engine.cache.ids[:8] == watch.ids[:8]


@pytest.mark.parametrize("matmul", [None, reference_matmul])
def test_seconds_of_a_product(matmul):
    found = product_seconds("Q8_0", [1, 4], 32, 64, repeats=2, matmul=matmul)
    assert [n for n, _ in found] == [1, 4] and all(s > 0 for _, s in found)


def test_a_product_is_asked_for_the_batches_it_is_named_by():
    seen = []
    product_seconds(
        "Q8_0", [2, 3], 32, 64, 1, matmul=lambda w, x, n: seen.append((w.shape, x.shape))
    )
    assert seen == 2 * [((32, 64), (2, 64))] + 2 * [((32, 64), (3, 64))]


def test_the_line():
    once, each = line_through([(1, 5.0), (2, 7.0), (10, 23.0)])
    assert once == pytest.approx(3) and each == pytest.approx(2)
    with pytest.raises(BadArgument, match="two"):
        line_through([(4, 1.0)])


def test_seconds_by_step(monkeypatch):
    model = load("built-in", backend="reference")
    ticks = iter(range(10**6))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(ticks))
    spent = step_seconds(model, [1, 2, 3], repeats=2)
    names = {spec.name for spec, _ in model.plan()}
    assert set(spent) == names
    assert spent["q"] == model.config.n_layer and spent["logits"] == 1
    assert np.isfinite(sum(spent.values()))
