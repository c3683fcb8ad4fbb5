"""Wrong answers to the exercises of chapter 10."""

import numpy as np

ONE = 2 * 40 * 8 * 128 * 8192


def relu(x):
    return np.maximum(x, 0)


def ln(x, g, e, bottom):
    return (x - x.mean()) / bottom(x) * g


WRONG = {
    "ex10.count": [
        24 * (4 * 1024**2 + 2 * 1024 * 4096) + 50_000 * 1024,
        24 * (4 * 1024**2 + 2 * 1024 * 4096),
        24 * (4 * 1024**2 + 3 * 1024 * 4096) + 2 * 50_000 * 1024,
        24 * (3 * 1024**2 + 2 * 1024 * 4096) + 2 * 50_000 * 1024,
        24 * (4 * 1024**2 + 1024 * 4096) + 2 * 50_000 * 1024,
        4 * 1024**2 + 2 * 1024 * 4096 + 2 * 50_000 * 1024,
        24 * (1024**2 + 2 * 1024 * 4096) + 2 * 50_000 * 1024,
        24 * (4 * 1024**2 + 2 * 4096**2) + 2 * 50_000 * 1024,
        24 * (4 * 1024 * 4096 + 2 * 1024**2) + 2 * 50_000 * 1024,
        404_389_889,
        404e6,
        "404389888",
    ],
    "ex10.requests": [19, 76, 39, 38.4, 307, 314_572, 35, 3, 41, 40, 4, 9],
    "ex10.intensity": [
        [1, 1],
        [1, 512],
        [512, 512],
        [512],
        512,
        [64, 1],
        [512 * 8, 8],
        [1 / 512, 1],
        [512, 0.125],
        [511, 1],
        [1024, 2],
        ["512", "1"],
    ],
    "ex10.depth": [
        80,
        -19,
        0.8**99,
        1 / 0.8**100,
        0.8,
        0,
        0.2**100,
        1.8**100,
        0.8**10,
        100**0.8,
        float("inf"),
    ],
    "ex10.rule": [
        [1, 8, 11, 10, 5, 12],
        [8, 43, 218, 1093, 5468, 27343],
        [8, 13, 12, 9, 0, 5],
        [8, 11, 10, 5, 12, 16],
        [8, 11, 10, 5, 12],
        [8, 11, 10, 5, 12, 15, 14],
        [15, 12, 5, 10, 11, 8],
        [8, 12, 11, 6, 1, 12],
        [8, 8, 8, 8, 8, 8],
        [4, 7, 6, 1, 8, 11],
        [8.5, 11, 10, 5, 12, 15],
        "8 11 10 5 12 15",
    ],
    "ex10.feed_forward": [
        lambda x, a, b: np.abs(x @ a) @ b,
        lambda x, a, b: x + np.abs(x @ a) @ b,
        lambda x, a, b: relu(x @ a) @ b,
        lambda x, a, b: x + x @ a @ b,
        lambda x, a, b: relu(x + x @ a @ b),
        lambda x, a, b: x + relu(x @ a @ b),
        lambda x, a, b: x + relu(-(x @ a)) @ b,
        lambda x, a, b: x + np.minimum(x @ a, 0) @ b,
        lambda x, a, b: x - relu(x @ a) @ b,
        lambda x, a, b: relu(x) + relu(x @ a) @ b,
        lambda x, a, b: 2 * x + relu(x @ a) @ b,
        lambda x, a, b: x + np.tanh(x @ a) @ b,
        lambda x, a, b: x + (x @ a > 0) @ b,
        lambda x, a, b: x * relu(x @ a) @ b,
    ],
    "ex10.layer_norm": [
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
