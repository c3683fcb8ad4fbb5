"""Wrong answers to the exercises of chapter 09."""

import numpy as np

from synapse_edu.classroom.exercises.ex09 import document_mask, rotations


def up(hidden, multiple):
    return multiple * ((int(hidden) + multiple - 1) // multiple)


def eye(s):
    return np.eye(len(s), dtype=bool)


def keys(s):
    return np.arange(len(s))


WRONG = {
    "ex09.ffn_dim": [
        lambda d, m, k: up(m * 4 * d, k),
        lambda d, m, k: up(8 * d / 3, k),
        lambda d, m, k: int(m * int(8 * d / 3)),
        lambda d, m, k: int(m * int(8 * d / 3)) // k * k,
        lambda d, m, k: up(m * int(2 * d / 3), k),
        lambda d, m, k: up(m * int(4 * d / 3), k),
        lambda d, m, k: up(int(8 * d / 3), k) * m,
        lambda d, m, k: k * (int(m * int(8 * d / 3)) // k + 1),
        lambda d, m, k: up(int(8 * d / 3) + m, k),
        lambda d, m, k: up(round(m * round(8 * d / 3)), k) + k,
        lambda d, m, k: 14336,
        lambda d, m, k: up(3 * 4 * d / 2, k),
        lambda d, m, k: up(m * int(8 * d / 3), 256),
        lambda d, m, k: up(int(8 * d / 3) / m, k),
    ],
    "ex09.rotations": [
        lambda a, s, n: a[:n],
        lambda a, s, n: a[s + 1 : s + n + 1],
        lambda a, s, n: a[s : s + n - 1],
        lambda a, s, n: a[s : s + n + 1],
        lambda a, s, n: a[s:],
        lambda a, s, n: a[s:n],
        lambda a, s, n: a[: s + n],
        lambda a, s, n: a[s : s + n][::-1],
        lambda a, s, n: np.repeat(a[s : s + 1], n, axis=0),
        lambda a, s, n: a[n : s + n],
        lambda a, s, n: a[s : s + n] - a[s],
        lambda a, s, n: a[3:7],
        lambda a, s, n: rotations(a, s, n).T,
    ],
    "ex09.hidden": [21, 36, 216, 201, 30, 180, 6, 0, 5, 16, 435, 14],
    "ex09.document_mask": [
        lambda s: np.tril(np.ones((len(s), len(s)), bool)),
        lambda s: s == s[:, None],
        lambda s: document_mask(s) & ~eye(s),
        lambda s: document_mask(s).T,
        lambda s: ~document_mask(s),
        lambda s: (keys(s) <= keys(s)[:, None]) & (keys(s) > s[:, None]) | eye(s),
        lambda s: (keys(s) <= keys(s)[:, None]) & (keys(s) >= s),
        lambda s: (keys(s) <= keys(s)[:, None]) & (keys(s) < s[:, None]),
        lambda s: (keys(s) <= keys(s)[:, None]) | (s == s[:, None]),
        lambda s: np.where(document_mask(s), 0.0, -np.inf),
        lambda s: document_mask(s)[:-1],
        lambda s: document_mask(np.array([0, 0, 0, 3, 3, 3, 3, 7])),
        lambda s: (keys(s) <= keys(s)[:, None] + 1) & (s == s[:, None]),
    ],
    "ex09.passes": [8, 9, 17, 14, 12, 5, 21, 24, 16, 10, 19, 3],
}
