"""AdamW's arithmetic, the schedule, and clipping."""

import numpy as np
import pytest

from synapse_edu.study import optimiser
from synapse_edu.study.recipe import Recipe


def test_schedule_and_clipping():
    recipe = Recipe(n_steps=100, n_warmup=10, learning_rate=1.0, final_rate=0.1)
    rates = [optimiser.learning_rate(recipe, s) for s in range(100)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == 1 and rates[10] == pytest.approx(1)
    assert all(a >= b for a, b in zip(rates[10:], rates[11:], strict=False))
    assert rates[-1] == pytest.approx(0.1, abs=0.01)
    grads = {"a": np.full(4, 3.0, np.float32)}
    assert optimiser.clip(grads, 1.0) == pytest.approx(6)
    assert np.linalg.norm(grads["a"]) == pytest.approx(1, rel=1e-6)


def test_first_step_of_adamw():
    """After one step the moments cancel: each weight moves by the rate against its gradient."""
    recipe = Recipe(n_warmup=1, learning_rate=0.5, weight_decay=0.1)
    p = {"a": np.array([[1.0, -2.0]], np.float32), "b": np.array([1.0], np.float32)}
    grads = {"a": np.array([[3.0, -4.0]], np.float32), "b": np.array([2.0], np.float32)}
    m, v = ({k: np.zeros_like(x) for k, x in p.items()} for _ in range(2))
    optimiser.adamw(p, grads, m, v, 0, recipe)
    assert np.allclose(p["a"], [[0.95 - 0.5, -1.9 + 0.5]], atol=1e-5)
    assert np.allclose(p["b"], [0.5], atol=1e-5), "vectors do not decay"
