"""Wrong answers to the exercises of chapter 03."""

import numpy as np

from synapse_edu.classroom.exercises.ex03 import repeat_kv, sigmoid, swiglu


def naive_silu_by_parts(gate, up):
    e = np.exp(gate)
    return gate * e / (1 + e) * up  # NaN for large gates


def ln(x, g, e, bottom):
    return (x - x.mean()) / bottom(x) * g


WRONG = {
    "ex03.swiglu": [
        lambda g, u: swiglu(u, g),
        lambda g, u: sigmoid(g) * u,
        lambda g, u: np.maximum(g, 0) * u,
        lambda g, u: g * sigmoid(g),
        lambda g, u: g * sigmoid(u),
        lambda g, u: g * sigmoid(-g) * u,
        lambda g, u: g / (1 + sigmoid(g)) * u,
        lambda g, u: g * sigmoid(g) + u,
        lambda g, u: g * np.tanh(g) * u,
        lambda g, u: 0.5 * g * (1 + np.tanh(0.7978845608 * (g + 0.044715 * g**3))) * u,
        lambda g, u: g * sigmoid(1.702 * g) * u,
        lambda g, u: swiglu(g, swiglu(u, np.ones_like(u))),
        naive_silu_by_parts,
        lambda g, u: g * u,
    ],
    "ex03.width": [16384, 10922, 10752, 2730, 12288, 10923, 8192, 11264, 5461, 32768, 14336, 1024],
    "ex03.repeat_kv": [
        lambda x, n: np.tile(x, (1, n, 1)),
        lambda x, n: np.repeat(x, n, axis=0),
        lambda x, n: np.repeat(x, n, axis=2),
        lambda x, n: x,
        lambda x, n: np.tile(x, n),
        lambda x, n: np.concatenate([x] * n, axis=1),
        lambda x, n: repeat_kv(x, n)[:, ::-1],
        lambda x, n: np.repeat(x, n, axis=1) / n,
        lambda x, n: np.repeat(x, n + 1, axis=1),
        lambda x, n: np.repeat(x, 3, axis=1),
        lambda x, n: np.repeat(x[:, :1], n * x.shape[1], axis=1),
        lambda x, n: np.repeat(x, n),
    ],
    "ex03.recompute": [90, 10, 100, 50, 49.5, 4950 / 99, 40.45, 5050 / 99 - 0.5, 1, 99, 9900, 60.5],
    "ex03.tied": [
        1002,
        4008,
        525.336576,
        262_668_288,
        525_336_576,
        250.5,
        0.489,
        63,
        2004,
        1,
        128.3,
    ],
    "ex03.layer_norm": [
        lambda x, g, e: x / np.sqrt(np.mean(x**2) + e) * g,
        lambda x, g, e: ln(x, g, e, lambda x: np.sqrt(x.var(ddof=1) + e)),
        lambda x, g, e: ln(x, g, e, lambda x: x.var() + e),
        lambda x, g, e: ln(x, 1, e, lambda x: np.sqrt(x.var() + e)),
        lambda x, g, e: ln(x, g, e, lambda x: np.sqrt(x.var()) + e),
        lambda x, g, e: ln(x, g, e, lambda x: np.sqrt(x.var())),
        lambda x, g, e: ln(x, g, e, lambda x: np.sqrt(np.mean(x**2) + e)),
        lambda x, g, e: ln(x, g, e, lambda x: np.abs(x - x.mean()).mean() + e),
        lambda x, g, e: (x - np.median(x)) / np.sqrt(x.var() + e) * g,
        lambda x, g, e: x - x.mean() * g,
        lambda x, g, e: x / np.sqrt(x.var() + e) * g,
        lambda x, g, e: (x - x.mean()) / np.sqrt(x.var() + e) + g,
        lambda x, g, e: (x - x.mean()) / (x.max() - x.min() + e) * g,
    ],
}
