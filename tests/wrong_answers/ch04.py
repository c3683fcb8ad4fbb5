"""Wrong answers to the exercises of chapter 04."""

import numpy as np

from synapse_edu.classroom.exercises.ex04 import attend, causal_mask, merge, softmax


def mask(allowed, hide=-np.inf):
    def wrong(n, start):
        query, key = start + np.arange(n)[:, None], np.arange(start + n)
        return np.where(allowed(query, key, start), 0.0, hide)

    return wrong


def through(wrong_mask):
    return lambda Q, K, V, start: attend(Q, K, V, start, wrong_mask)


def square(n, start):
    return np.triu(np.full((n, n), -np.inf), 1)


def merged(weights, top=max, finish=lambda out: out):
    def wrong(a, b):
        m = top(a[0], b[0])
        wa, wb = weights(a, b, m)
        return finish(np.concatenate([[m, a[1] * wa + b[1] * wb], a[2:] * wa + b[2:] * wb]))

    return wrong


def right(a, b, m):
    return np.exp(a[0] - m), np.exp(b[0] - m)


WRONG = {
    "ex04.mask": [
        square,
        mask(lambda q, k, s: k < q),
        mask(lambda q, k, s: k <= q + 1),
        mask(lambda q, k, s: k <= q - s),
        mask(lambda q, k, s: k >= q),
        mask(lambda q, k, s: k > q),
        mask(lambda q, k, s: k <= q, 1.0),
        mask(lambda q, k, s: k <= q, -1e9),
        mask(lambda q, k, s: k <= q, np.inf),
        mask(lambda q, k, s: k <= q, np.nan),
        mask(lambda q, k, s: (k >= s) & (k <= q)),
        lambda n, start: np.zeros((n, start + n)),
        lambda n, start: causal_mask(n, start).T,
        lambda n, start: causal_mask(n, start) == 0,
        lambda n, start: causal_mask(n, start)[:, ::-1],
    ],
    "ex04.attend": [
        through(lambda n, s: 0),
        through(mask(lambda q, k, s: k <= q - s)),
        through(mask(lambda q, k, s: k <= q + 1)),
        through(mask(lambda q, k, s: k <= np.maximum(q - 1, 0))),
        through(mask(lambda q, k, s: k >= q)),
        through(mask(lambda q, k, s: k <= q, 1.0)),
        through(mask(lambda q, k, s: k <= q, -1.0)),
        through(mask(lambda q, k, s: (k >= s) & (k <= q))),
        lambda Q, K, V, start: attend(Q * np.sqrt(Q.shape[1]), K, V, start),
        lambda Q, K, V, start: attend(Q / np.sqrt(Q.shape[1]), K, V, start),
        lambda Q, K, V, start: attend(Q, V, K, start),
        lambda Q, K, V, start: attend(Q, K, V, start)[-1:],
        lambda Q, K, V, start: np.tril(softmax(Q @ K.T / np.sqrt(Q.shape[1])), start) @ V,
        lambda Q, K, V, start: softmax(np.tril(Q @ K.T / np.sqrt(Q.shape[1]), start)) @ V,
    ],
    "ex04.online_softmax": [
        merged(lambda a, b, m: (1.0, 1.0)),
        merged(lambda a, b, m: right(a, b, m)[::-1]),
        merged(lambda a, b, m: (right(a, b, m)[0], 1.0)),
        merged(lambda a, b, m: (1.0, right(a, b, m)[1])),
        merged(lambda a, b, m: [1 / max(w, 1e-300) for w in right(a, b, m)]),
        merged(right, top=min),
        merged(right, top=lambda x, y: x),
        merged(right, top=lambda x, y: (x + y) / 2),
        merged(right, finish=lambda out: np.concatenate([out[:2], out[2:] / out[1]])),
        merged(right, finish=lambda out: out[2:] / out[1]),
        merged(right, finish=lambda out: out[1:]),
        lambda a, b: (a + b) / 2,
        lambda a, b: np.concatenate([merge(a, b)[:2], a[2:] + b[2:]]),
        lambda a, b: np.concatenate([[max(a[0], b[0]), a[1] + b[1]], merge(a, b)[2:]]),
    ],
    "ex04.reads": [
        64 * 8 / 4.5, 93 * 8 / 4.5, 46.5, 93 / (93 / 64) * 8 / 4.5, 8 / 4.5, 29 * 8 / 4.5,
        46.5 * 4.5 / 8, 46.5 * 2, 93 / 3 * 8 / 4.5, 46.5 * 4.5, 57, 93,
    ],
    "ex04.rows": [0, 9, 8, 2, 5, 4, -1, 10, 1.5, "the last", [1], True],
}  # fmt: skip
