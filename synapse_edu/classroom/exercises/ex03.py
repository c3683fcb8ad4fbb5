"""Exercises of chapter 03: the gate, its width, shared heads, what a cache saves, tying."""

import numpy as np

from ..tasks import Task, register
from .draws import normal, pick


def swiglu(gate, up):
    gate, up = np.asarray(gate, float), np.asarray(up, float)
    e = np.exp(-np.abs(gate))  # never overflows
    sigmoid = np.where(gate >= 0, 1 / (1 + e), e / (1 + e))
    return gate * sigmoid * up


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -80, 80)))


register(
    Task(
        "ex03.swiglu",
        right=swiglu,
        hints=(
            "SiLU(z) = z / (1 + e^(−z)) = z · sigmoid(z). Only the gate goes through it.",
            "e^(−z) overflows for z = −1 000. Where the limit is 0, return 0 and no NaN.",
            "With e = np.exp(-np.abs(gate)), the sigmoid is 1/(1+e) for gate ≥ 0 and e/(1+e) "
            "below.",
        ),
        inputs=lambda rng: [
            (normal(rng, 12, scale=3), normal(rng, 12)),
            (np.array([-1000, -200, 0, 200, 1000], np.float32), np.ones(5, np.float32)),
            (normal(rng, 3, 4), normal(rng, 3, 4)),
            (np.array([-1e5, 1e5]), np.array([2.0, -2.0])),
        ],
        mistakes=lambda: [
            (lambda g, u: swiglu(u, g), "gate and up are exchanged"),
            (lambda g, u: sigmoid(g) * u, "the sigmoid is multiplied by the gate itself, too"),
            (lambda g, u: np.maximum(g, 0) * u, "that is ReLU"),
            (lambda g, u: g * sigmoid(g), "the other projection is missing"),
        ],
        rtol=1e-5,
        atol=1e-6,
    )
)


def _width(d, multiple):
    return -(-(8 * d // 3) // multiple) * multiple


register(
    Task(
        "ex03.width",
        right=_width,
        question=(
            "A plain feed-forward layer has two matrices of d = {d} by 4·d. How wide is a gated "
            "one, with three matrices, that has about as many weights? Round the width up to a "
            "multiple of {multiple}, as the official code does."
        ),
        given={"d": 4096, "multiple": 256},
        draw=lambda rng: {
            "d": 128 * int(rng.integers(9, 60)),
            "multiple": pick(rng, 256, 512, 1024),
        },
        hints=(
            "Two matrices of d by 4·d hold 8·d² weights. Three of d by w hold 3·d·w.",
            "w = 8·d/3, which the code rounds down to a whole number before it rounds up to the "
            "multiple.",
            "8 · {d} // 3, then up to the next multiple of {multiple}",
        ),
        mistakes=lambda d, multiple: [
            (wrong, cause)
            for wrong, cause in (
                (4 * d, "three matrices of 4·d hold 1.5 times as much as two"),
                (8 * d // 3, "not yet rounded up to the multiple"),
                (8 * d // 3 // multiple * multiple, "rounded down; the code rounds up"),
                (2 * d // 3, "that is two thirds of d; begin with two thirds of 4·d"),
            )
            if wrong != _width(d, multiple)
        ],
    )
)


def repeat_kv(x, n_rep):
    return np.repeat(x, n_rep, axis=1)


register(
    Task(
        "ex03.repeat_kv",
        right=repeat_kv,
        hints=(
            "Two key/value heads A and B, each for three query heads. In which order must they "
            "stand?",
            "A A A B B B: query head h reads h // n_rep. The broken function gives A B A B A B.",
            "np.repeat(x, n_rep, axis=1)",
        ),
        inputs=lambda rng: [
            (normal(rng, 5, 2, 4), 3),
            (normal(rng, 4, 4, 4), 2),
            (normal(rng, 3, 1, 8), 4),
            (normal(rng, 3, 3, 2), 1),
        ],
        mistakes=lambda: [
            (lambda x, n: np.tile(x, (1, n, 1)), "tiled: A B A B instead of A A B B"),
            (
                lambda x, n: np.repeat(x[:, :1], n * x.shape[1], axis=1),
                "every query head reads head 0",
            ),
        ],
    )
)

register(
    Task(
        "ex03.recompute",
        right=lambda prompt, new: sum(range(prompt, prompt + new)) / (prompt + new - 1),
        rtol=1e-4,
        question=(
            "A prompt has {prompt} tokens, and {new} more are written, one a pass. Without a cache "
            "each pass computes the keys of all tokens so far. With a cache each token's keys are "
            "computed once (the last token written is never passed on). How many times as many "
            "keys are computed without the cache?"
        ),
        given={"prompt": 10, "new": 90},
        draw=lambda rng: {
            "prompt": int(rng.integers(2, 20)) * 5,
            "new": int(rng.integers(3, 20)) * 10,
        },
        hints=(
            "The first pass sees the prompt, and each later one a token more.",
            "Without: {prompt} + ({prompt} + 1) + …, {new} terms. With: {prompt} + {new} − 1.",
            "sum(range({prompt}, {prompt} + {new})) / ({prompt} + {new} - 1)",
        ),
        mistakes=lambda prompt, new: [
            (new, "not every pass is as long as the last one"),
            (
                sum(range(prompt, prompt + new + 1)) / (prompt + new - 1),
                "one pass too many: the last token written is never passed on",
            ),
            (
                sum(range(new)) / (prompt + new - 1),
                "each pass sees the prompt too",
            ),
            (
                sum(range(prompt, prompt + new)) / new,
                "with a cache, the prompt's keys are computed once as well",
            ),
        ],
    )
)

register(
    Task(
        "ex03.tied",
        right=lambda vocabulary, d, bits: vocabulary * d * bits / 8 / 2**20,
        rtol=1e-3,
        question=(
            "A model has a vocabulary of {vocabulary} and a stream of {d}. Its tables are stored "
            "with {bits} bits a number. How many MiB does tying the two tables save?"
        ),
        given={"vocabulary": 128_256, "d": 2048, "bits": 16},
        draw=lambda rng: {
            "vocabulary": pick(rng, 32_000, 49_152, 151_936, 131_072),
            "d": pick(rng, 576, 896, 1536, 3072, 5120),
            "bits": pick(rng, 4, 8, 32),
        },
        hints=(
            "Tying saves one of two tables of the same size.",
            "vocabulary · d numbers of {bits} bits; a byte has 8 bits, and a MiB 2²⁰ bytes.",
            "{vocabulary} · {d} · {bits} / 8 / 2**20",
        ),
        mistakes=lambda vocabulary, d, bits: [
            (2 * vocabulary * d * bits / 8 / 2**20, "one of the two tables stays"),
            (vocabulary * d * bits / 2**20, "these are bits: eight of them are a byte"),
            (vocabulary * d * bits / 8 / 1e6, "a MiB is 2²⁰ bytes, not 10⁶"),
            (vocabulary * d * bits / 8, "these are bytes"),
        ],
    )
)


def layer_norm(x, g, eps):
    x = np.asarray(x, float)
    return (x - x.mean()) / np.sqrt(x.var() + eps) * g


register(
    Task(
        "ex03.layer_norm",
        right=layer_norm,
        hints=(
            "Take off the mean, then divide by the root of the variance plus ε, then scale.",
            "The variance is the mean of the squared distances from the mean: divide by n, not by "
            "n − 1.",
            "(x - x.mean()) / np.sqrt(x.var() + eps) * g",
        ),
        inputs=lambda rng: [
            (normal(rng, 4), np.ones(4, np.float32), 1e-5),
            (np.array([2.0, -1.0, 0.5, 4.5], np.float32), normal(rng, 4), 1e-5),
            (normal(rng, 8, scale=0.01), normal(rng, 8), 1e-2),
            (np.full(5, 3, np.float32), np.ones(5, np.float32), 1e-5),
        ],
        mistakes=lambda: [
            (lambda x, g, e: x / np.sqrt(np.mean(x**2) + e) * g, "the mean stays: that is RMSNorm"),
            (
                lambda x, g, e: (x - x.mean()) / np.sqrt(x.var(ddof=1) + e) * g,
                "the variance is divided by n − 1",
            ),
            (lambda x, g, e: (x - x.mean()) / (x.var() + e) * g, "the root is missing"),
            (lambda x, g, e: (x - x.mean()) / np.sqrt(x.var() + e), "g is missing"),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)
