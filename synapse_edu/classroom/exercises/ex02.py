"""Exercises of chapter 02: the parts of a forward pass, each as a small function."""

import numpy as np

from ...ops.reference import norm
from ..tasks import Task, register
from .draws import normal, pick


def rms_norm(x, g, eps):
    return norm.rms_norm(x, g, eps)[1]


def _norm_inputs(rng):
    g = (1 + 0.3 * rng.standard_normal(16)).astype(np.float32)
    return [
        (normal(rng, 3, 16), g, 1e-5),
        (normal(rng, 2, 16) + np.float32(3), g, 1e-5),  # a mean that is not zero
        (normal(rng, 1, 16, scale=1e-3), g, 1e-2),  # ε matters
        (np.zeros((2, 16), np.float32), g, 1e-6),
    ]


def _norm_without_eps(x, g, eps):
    with np.errstate(divide="ignore", invalid="ignore"):  # a row of zeros is among the inputs
        return x / np.sqrt(np.mean(x**2, -1, keepdims=True)) * g


register(
    Task(
        "ex02.rms_norm",
        right=rms_norm,
        hints=(
            "Three steps for each row: the mean of the squares, the root of it, the division.",
            "ε is added to the mean of the squares, before the root is taken. g comes last.",
            "x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) * g",
        ),
        inputs=_norm_inputs,
        mistakes=lambda: [
            (lambda x, g, eps: x / np.sqrt(np.mean(x**2, -1, keepdims=True) + eps), "g is missing"),
            (
                lambda x, g, eps: (
                    (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * g
                ),
                "the mean is taken off: that is LayerNorm",
            ),
            (
                lambda x, g, eps: x / np.sqrt(np.sum(x**2, -1, keepdims=True) + eps) * g,
                "the squares are summed, not averaged",
            ),
            (
                lambda x, g, eps: x / (np.sqrt(np.mean(x**2, -1, keepdims=True)) + eps) * g,
                "ε is added after the root",
            ),
            (_norm_without_eps, "ε is missing"),
            (
                lambda x, g, eps: x / np.sqrt(np.mean(x**2) + eps) * g,
                "the mean runs over all rows together",
            ),
        ],
        rtol=1e-4,
        atol=1e-6,
    )
)


def rope(x, p, base):
    d = x.shape[-1]
    theta = p * float(base) ** (-2.0 * np.arange(d // 2) / d)  # (d / 2,)
    a, b = x[:, 0::2].astype(float), x[:, 1::2].astype(float)  # (heads, d / 2) each
    out = np.empty(x.shape)
    out[:, 0::2] = a * np.cos(theta) - b * np.sin(theta)
    out[:, 1::2] = a * np.sin(theta) + b * np.cos(theta)
    return out


def half_split(x, p, base):
    """The mistake that chapter 02 makes on purpose: pairs i and i + d/2."""
    d = x.shape[-1]
    order = np.arange(d).reshape(2, -1).T.ravel()  # (d,): 0, d/2, 1, d/2 + 1, …
    out = np.empty(x.shape)
    out[:, order] = rope(x[:, order], p, base)
    return out


register(
    Task(
        "ex02.rope",
        right=rope,
        hints=(
            "At position 0 nothing turns, so test at position 1, with a vector such as "
            "(1, 0, 0, 0).",
            "There are two mistakes: which elements form a pair, and how fast pair i turns.",
            "Pairs are x[:, 0::2] and x[:, 1::2], and the angle is p · base^(−2i/d).",
        ),
        inputs=lambda rng: [
            (normal(rng, 2, 8), 5, 10000.0),
            (normal(rng, 1, 16), 0, 10000.0),
            (normal(rng, 3, 64), int(rng.integers(100, 4000)), 500000.0),
            (normal(rng, 2, 2), 1, 10000.0),
        ],
        mistakes=lambda: [
            (half_split, "half-split pairs; in a Llama file neighbours are a pair"),
            (lambda x, p, base: rope(x, -p, base), "it turns the other way"),
            (lambda x, p, base: rope(x, p, base**0.5), "the exponent is −i/d, half of what it is"),
            (
                lambda x, p, base: half_split(x, p, base**0.5),
                "half-split pairs, and half the exponent",
            ),
            (lambda x, p, base: rope(x, p + 1, base), "positions are counted from 1"),
            (lambda x, p, base: x, "nothing is turned"),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)


def attention(q, K, V):
    s = K.astype(float) @ q.astype(float) / np.sqrt(len(q))  # (T,)
    e = np.exp(s - s.max())  # (T,)
    return e @ V.astype(float) / e.sum()


def _softmax(s, axis=-1):
    e = np.exp(s - s.max())
    return e / e.sum()


register(
    Task(
        "ex02.attention",
        right=attention,
        hints=(
            "Scores, soft-max, weighted average: one line each.",
            "Divide the scores by the root of the length of q. Take the largest score off before "
            "the exponential, or scores of 1 000 overflow.",
            "s = K @ q / np.sqrt(len(q)); e = np.exp(s - s.max()); (e / e.sum()) @ V",
        ),
        inputs=lambda rng: [
            (normal(rng, 8), normal(rng, 5, 8), normal(rng, 5, 8)),
            (normal(rng, 4, scale=100), normal(rng, 6, 4, scale=30), normal(rng, 6, 4)),
            (normal(rng, 16), normal(rng, 1, 16), normal(rng, 1, 16)),
            (normal(rng, 4), normal(rng, 4, 4), normal(rng, 4, 4)),
        ],
        mistakes=lambda: [
            (lambda q, K, V: _softmax(K @ q) @ V, "missing 1/√d"),
            (lambda q, K, V: _softmax(K @ q / len(q)) @ V, "the scores are divided by d, not √d"),
            (
                lambda q, K, V: _softmax(K[:-1] @ q / np.sqrt(len(q))) @ V[:-1],
                "mask off by one: the token does not see itself",
            ),
            (lambda q, K, V: V.mean(axis=0), "all values weigh the same"),
            (lambda q, K, V: V[np.argmax(K @ q)], "only the best key counts: soft-max, not max"),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)


register(
    Task(
        "ex02.kv_heads",
        right=lambda n_head, n_head_kv: np.arange(n_head) // (n_head // n_head_kv),
        hints=(
            "n_head / n_head_kv neighbours share one key/value head.",
            "For 6 query heads and 2 key/value heads it is 0, 0, 0, 1, 1, 1.",
            "np.arange(n_head) // (n_head // n_head_kv)",
        ),
        inputs=lambda rng: [
            (9, 3),
            (6, 2),
            (int(rng.integers(2, 9)) * 4, 4),
            (4, 4),
            (5, 1),
        ],
        mistakes=lambda: [
            (lambda n, kv: np.arange(n) % kv, "the heads are dealt out like cards: tiled"),
            (lambda n, kv: np.arange(n) // kv, "divided by the number of key/value heads"),
            (lambda n, kv: np.arange(n) // (n // kv) + 1, "heads are counted from 0"),
        ],
    )
)


def top_k(logits, k):
    return np.argsort(-logits, kind="stable")[:k]


register(
    Task(
        "ex02.top_k",
        right=top_k,
        hints=(
            "np.argsort sorts upwards.",
            "Sort the negated logits, with kind='stable', so that of equal ones the lower id "
            "stays first.",
            "np.argsort(-logits, kind='stable')[:k]",
        ),
        inputs=lambda rng: [
            (normal(rng, 9), 3),
            (np.array([1, 3, 3, 0, 3, 2], np.float32), 2),
            (normal(rng, 5), 5),
            (normal(rng, 4), 9),
            (np.tile(np.array([0, 1], np.float32), 20), 12),
        ],
        mistakes=lambda: [
            (lambda z, k: np.argsort(z, kind="stable")[:k], "sorted upwards: the smallest ones"),
            (
                lambda z, k: np.argsort(z, kind="stable")[::-1][:k],
                "of equal logits the higher id comes first",
            ),
            (lambda z, k: np.sort(z)[::-1][:k], "these are the logits, not their ids"),
        ],
    )
)


register(
    Task(
        "ex02.first_row",
        right=lambda n: 1,
        question=(
            "A program pairs the wrong elements in RoPE, in every layer. It reads a prompt of {n} "
            "tokens and gives {n} rows of logits. How many of them are exactly right?"
        ),
        given={"n": 12},
        draw=lambda rng: {"n": int(rng.integers(7, 40))},
        hints=(
            "Which angle belongs to which position?",
            "A vector that is turned by the angle 0 stays as it is, whatever its pairs are.",
            "Position 0 has only angles of 0, and sees only itself. Every later one sees keys that "
            "were turned wrongly.",
        ),
        mistakes=lambda n: [
            (0, "at position 0 every angle is 0, so that row cannot be wrong"),
            (n, "the angles are wrong from position 1 on"),
            (n - 1, "it is the other way round: one row is right"),
        ],
    )
)


register(
    Task(
        "ex02.cache",
        right=lambda layers, kv_heads, width, tokens: 2 * layers * kv_heads * width * 2 * tokens,
        question=(
            "A model has {layers} layers and {kv_heads} key/value heads of width {width}. Its "
            "cache is 16-bit. How many bytes do {tokens} tokens take?"
        ),
        given={"layers": 30, "kv_heads": 3, "width": 64, "tokens": 1000},
        draw=lambda rng: {
            "layers": pick(rng, 16, 22, 28, 32, 36, 40),
            "kv_heads": pick(rng, 4, 8, 10),
            "width": pick(rng, 64, 96, 128),
            "tokens": int(rng.integers(3, 60)) * 100,
        },
        hints=(
            "Each token leaves a key and a value in each layer, for each key/value head.",
            "A 16-bit number takes 2 bytes.",
            "2 · {layers} · {kv_heads} · {width} · 2 · {tokens}",
        ),
        mistakes=lambda layers, kv_heads, width, tokens: [
            (
                layers * kv_heads * width * 2 * tokens,
                "one factor 2 is missing: there are K and V, and a number has two bytes",
            ),
            (2 * kv_heads * width * 2 * tokens, "this is one layer"),
            (2 * layers * width * 2 * tokens, "this is one head"),
            (2 * layers * kv_heads * width * 2, "this is one token"),
        ],
    )
)
