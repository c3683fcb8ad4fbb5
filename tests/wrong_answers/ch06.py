"""Wrong answers to the exercises of chapter 06."""

import numpy as np

from synapse_edu.classroom.exercises.ex02 import half_split
from synapse_edu.classroom.exercises.ex02 import rope as neighbours
from synapse_edu.classroom.exercises.ex06 import factors, permute, temperature, unpermute


def halves_in_place(x, p, base):
    x[:] = half_split(x, p, base)
    return x


def halves_put_side_by_side(x, p, base):
    """Takes halves and writes neighbours."""
    d = x.shape[-1]
    order = np.arange(d).reshape(2, -1).T.ravel()
    return half_split(x, p, base)[:, order]


def changed(lo=lambda x: x, hi=lambda x: x, f=lambda x: x, ctx=lambda x: x):
    return lambda w, factor, low, high, n: factors(w, f(factor), lo(low), hi(high), ctx(n))


WRONG = {
    "ex06.permute": [
        unpermute,
        lambda W, n: permute(W, 1),
        lambda W, n: W,
        lambda W, n: permute(permute(W, n), n),
        lambda W, n: W[::-1],
        lambda W, n: W.reshape(n, -1, W.shape[1])[::-1].reshape(W.shape),
        lambda W, n: np.concatenate([W[0::2], W[1::2]]),
        lambda W, n: np.concatenate([W[len(W) // 2 :], W[: len(W) // 2]]),
        lambda W, n: permute(W, len(W) // 2),
        lambda W, n: permute(W, n).T,
        lambda W, n: permute(np.ascontiguousarray(W.T), 1).T if W.shape[1] % 2 == 0 else W,
        lambda W, n: permute(W, n).reshape(n, -1, W.shape[1]),
        lambda W, n: W.reshape(-1, n, W.shape[1]).swapaxes(0, 1).reshape(W.shape),
    ],
    "ex06.halves": [
        neighbours,
        halves_put_side_by_side,
        halves_in_place,
        lambda x, p, base: half_split(x, -p, base),
        lambda x, p, base: half_split(x, p + 1, base),
        lambda x, p, base: half_split(x, p, base**0.5),
        lambda x, p, base: half_split(x, p, 10000.0),
        lambda x, p, base: half_split(x, 1, base),
        lambda x, p, base: half_split(x, p, 1 / base),
        lambda x, p, base: half_split(x[:, ::-1], p, base)[:, ::-1],
        lambda x, p, base: half_split(x, p, base) * np.sqrt(2),
        lambda x, p, base: half_split(half_split(x, p, base), p, base),
        lambda x, p, base: x,
        lambda x, p, base: half_split(x, p, base)[:1],
    ],
    "ex06.factors": [
        lambda *a: 1 / factors(*a),
        lambda w, f, *a: np.full(len(w), f),
        lambda w, f, lo, hi, n: np.where(w > n / lo, f, 1.0),
        lambda w, f, lo, hi, n: np.where(w > n / hi, f, 1.0),
        lambda w, f, lo, hi, n: np.where(w > n, f, 1.0),
        lambda w, f, lo, hi, n: factors(w, f, hi, lo, n),
        changed(ctx=lambda n: n / 2),
        changed(f=lambda f: f / 2),
        changed(lo=lambda x: x / 2),
        changed(hi=lambda x: 2 * x),
        lambda w, f, lo, hi, n: (1 - np.clip((n / w - lo) / (hi - lo), 0, 1)) * (f - 1) + 1,
        lambda w, f, lo, hi, n: f ** (1 - np.clip((n / w - lo) / (hi - lo), 0, 1)),
        lambda *a: factors(*a)[::-1],
        lambda w, *a: np.ones(len(w)),
    ],
    "ex06.temperature": [
        lambda p, s, n: 1 + s * np.log(p / n + 1),
        lambda p, s, n: 1 + s * np.log10(p // n + 1),
        lambda p, s, n: 1 + s * np.log2(p // n + 1),
        lambda p, s, n: 1 + s * np.log(np.maximum(p // n, 1)),
        lambda p, s, n: 1 / temperature(p, s, n),
        lambda p, s, n: s * np.log(p // n + 1),
        lambda p, s, n: 1 + s * (p // n),
        lambda p, s, n: 1 + s * np.log(np.ceil(p / n) + 1),
        lambda p, s, n: 1 + s * np.log((p + 1) // n + 1),
        lambda p, s, n: 1 + 0.1 * np.log(p // 16_384 + 1),
        lambda p, s, n: (1 + s) * np.log(p // n + 1),
        lambda p, s, n: (1 + s * np.log(p // n + 1)) ** 2,
        lambda p, s, n: np.ones(len(p)),
        lambda p, s, n: float(temperature(p, s, n)[0]),
    ],
    "ex06.first_token": [
        [True, True, True],
        [False, False, False],
        [True, False, False],
        [False, False, True],
        [True, True, False],
        [False, True, True],
        [True, False, True],
        "the biases",
        [1],
        True,
        [False, True],
        [0.5, 1, 0],
    ],
    "ex06.slow_pairs": [18, 19, 10, 22, 13, 32, 0, 15, 7, 16, 12, 64],
}
