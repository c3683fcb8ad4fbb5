"""Exercises of chapter 09: the official pass: widths, slices, masks for documents, ragged rows."""

import numpy as np

from ...model import batched
from ...model.params import ModelArgs
from ..tasks import Task, register


def ffn_dim(dim, multiplier, multiple_of):
    args = ModelArgs(
        dim=dim, ffn_dim_multiplier=None if multiplier == 1 else multiplier, multiple_of=multiple_of
    )
    return args.ffn_dim


def _rounded(hidden, multiple):
    return multiple * -(-int(hidden) // multiple)


register(
    Task(
        "ex09.ffn_dim",
        right=ffn_dim,
        hints=(
            "Begin with 4 · dim, then take two thirds of it and cut off what is behind the point.",
            "Multiply, and cut off again. The last step rounds up to a multiple.",
            "h = int(2 * 4 * dim / 3); h = int(multiplier * h); multiple_of * ((h + multiple_of - "
            "1) // multiple_of)",
        ),
        inputs=lambda rng: [
            (4096, 1.3, 1024),
            (8192, 1.3, 4096),
            (4096, 1, 256),
            (2048, 1.5, 256),
            (128 * int(rng.integers(5, 60)), 1.3, 64),
            (96, 1.3, 1),
        ],
        mistakes=lambda: [
            (lambda d, m, k: _rounded(m * 4 * d, k), "two thirds are missing"),
            (lambda d, m, k: _rounded(2 * 4 * d / 3, k), "the multiplier is missing"),
            (lambda d, m, k: int(m * int(8 * d / 3)), "it is not rounded up to the multiple"),
            (lambda d, m, k: int(m * int(8 * d / 3)) // k * k, "rounded down instead of up"),
            (
                lambda d, m, k: _rounded(m * int(2 * d / 3), k),
                "begin with 4 · dim, not with dim",
            ),
        ],
    )
)


def table(head_dim, end, theta=10000.0):
    return batched.precompute_freqs_cis(head_dim, end, theta)


def rotations(angles, start_pos, n):
    return angles[start_pos : start_pos + n]


def _angles(rng, end=24):
    return np.outer(np.arange(end), 10000.0 ** (-np.arange(4) / 4))  # (end, 4)


register(
    Task(
        "ex09.rotations",
        right=rotations,
        hints=(
            "With start_pos = 0 the function is right. Which rows does the second piece get?",
            "The row of a token is its position in the whole sequence, not in the piece. And the "
            "piece has n tokens.",
            "angles[start_pos : start_pos + n]",
        ),
        inputs=lambda rng: [
            (_angles(rng), 0, 5),
            (_angles(rng), 3, 4),
            (_angles(rng), 7, 1),
            (_angles(rng), int(rng.integers(1, 10)), int(rng.integers(2, 8))),
        ],
        mistakes=lambda: [
            (lambda a, s, n: a[:n], "local positions: the piece is rotated as if it came first"),
            (lambda a, s, n: a[s + 1 : s + n + 1], "off by one: position 0 has the first row"),
            (lambda a, s, n: a[s : s + n] * 0 + a[s], "every token gets the first one's rotation"),
            (lambda a, s, n: a[s : s + n][::-1], "in reverse"),
        ],
    )
)

register(
    Task(
        "ex09.hidden",
        right=lambda cached, new: new * (new - 1) // 2,
        question=(
            "{cached} tokens are in the cache, and {new} new ones come at once. How many entries "
            "of the mask are −∞?"
        ),
        given={"cached": 30, "new": 6},
        draw=lambda rng: {"cached": int(rng.integers(9, 90)), "new": int(rng.integers(5, 40))},
        hints=(
            "How many are hidden from the first new token, how many from the last?",
            "The cache is visible to all of them. Of the new ones, token i may not see those "
            "after it.",
            "({new} − 1) + ({new} − 2) + … + 1 + 0",
        ),
        mistakes=lambda cached, new: [
            (new * (new + 1) // 2, "the diagonal is visible: a token sees itself"),
            (new * new, "that is the whole square of the new tokens"),
            (new * (cached + new), "that is the whole mask"),
            (new * (cached + new) - new * (new - 1) // 2, "these are the visible ones"),
        ],
    )
)


def document_mask(starts):
    starts = np.asarray(starts)
    key = np.arange(len(starts))
    return (key <= key[:, None]) & (key >= starts[:, None])


def _starts(rng, n=9):
    cuts = np.sort(rng.choice(np.arange(1, n), 3, replace=False))
    return np.array([max([0, *cuts[cuts <= i]]) for i in range(n)])


register(
    Task(
        "ex09.document_mask",
        right=document_mask,
        hints=(
            "A query may see a key if two things hold. Which?",
            "The key is not after the query, and not before the start of the query's document.",
            "key = np.arange(len(starts)); (key <= key[:, None]) & (key >= starts[:, None])",
        ),
        inputs=lambda rng: [
            (np.array([0, 0, 0, 3, 3, 3, 3, 7]),),
            (np.zeros(5, int),),
            (np.arange(4),),
            (_starts(rng),),
        ],
        mistakes=lambda: [
            (lambda s: np.tril(np.ones((len(s), len(s)), bool)), "documents see each other"),
            (lambda s: s == s[:, None], "the future of the own document is visible"),
            (
                lambda s: document_mask(s) & ~np.eye(len(s), dtype=bool),
                "mask off by one: a token sees itself",
            ),
            (lambda s: document_mask(s).T, "queries are rows, keys are columns"),
        ],
    )
)

register(
    Task(
        "ex09.passes",
        right=lambda a, b, c, new: max(a, b, c) + new - min(a, b, c),
        question=(
            "Three prompts of {a}, {b} and {c} tokens are generated together as in the official "
            "code, with at most {new} new tokens. Nothing stops early, and the context is long "
            "enough. How many forward passes are made?"
        ),
        given={"a": 4, "b": 9, "c": 6, "new": 8},
        draw=lambda rng: (
            dict(zip("abc", (int(x) for x in rng.permutation(np.arange(3, 20))[:3]), strict=True))
            | {"new": int(rng.integers(5, 30))}
        ),
        hints=(
            "How many tokens does the first pass take, and how many each later one?",
            "The first pass takes as many as the shortest prompt has. It decides the column after "
            "them. Each later pass decides one column more.",
            "The columns go on to the longest prompt plus {new}.",
        ),
        mistakes=lambda a, b, c, new: [
            (new, "the longer prompts pass one column at a time, too"),
            (new + 1, "the pass over the prompts decides a column already"),
            (max(a, b, c) + new, "the first pass takes as many as the shortest prompt has"),
            (max(a, b, c) + new - min(a, b, c) + 1, "the first pass decides a column already"),
        ],
    )
)
