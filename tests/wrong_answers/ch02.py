"""Wrong answers to the exercises of chapter 02."""

import numpy as np

from synapse_edu.classroom.exercises.ex02 import half_split, rms_norm, rope


def norm(top=lambda x: x, bottom=None, after=lambda y, g: y * g):
    def wrong(x, g, eps):
        return after(top(x) / bottom(x.astype(float), eps), g)

    return wrong


def mean_square(x):
    return np.mean(x**2, axis=-1, keepdims=True)


def rms_in_place(x, g, eps):
    x *= 1 / np.sqrt(np.mean(x**2, -1, keepdims=True) + eps)
    x *= g
    return x


def rope_in_place(x, p, base):
    x[:] = rope(x, p, base)
    return x


def with_angles(angle, cos=np.cos, sin=np.sin):
    def wrong(x, p, base):
        d = x.shape[-1]
        theta = angle(p, base, np.arange(d // 2), d)
        out = np.empty(x.shape)
        a, b = x[:, 0::2], x[:, 1::2]
        out[:, 0::2] = a * cos(theta) - b * sin(theta)
        out[:, 1::2] = a * sin(theta) + b * cos(theta)
        return out

    return wrong


def right_angle(p, base, i, d):
    return p * base ** (-2.0 * i / d)


def first_half_overwritten(x, p, base):
    d = x.shape[-1]
    theta = right_angle(p, base, np.arange(d // 2), d)
    out = x.astype(float)
    out[:, 0::2] = out[:, 0::2] * np.cos(theta) - out[:, 1::2] * np.sin(theta)
    out[:, 1::2] = out[:, 0::2] * np.sin(theta) + out[:, 1::2] * np.cos(theta)
    return out


def softmax(s):
    e = np.exp(s - s.max())
    return e / e.sum()


def attend(weights):
    return lambda q, K, V: weights(K @ q, len(q)) @ V


def naive(s):
    with np.errstate(all="ignore"):
        e = np.exp(s)
        return e / e.sum()


def all_scores_alike(s):
    return np.full(len(s), 1 / len(s))


def sorted_reverse(logits, k):
    return np.argsort(logits)[::-1][:k]


WRONG = {
    "ex02.rms_norm": [
        norm(bottom=lambda x, eps: np.sqrt(mean_square(x))),
        norm(bottom=lambda x, eps: np.sqrt(mean_square(x)) + eps),
        norm(bottom=lambda x, eps: np.sqrt(np.sum(x**2, -1, keepdims=True) + eps)),
        norm(bottom=lambda x, eps: mean_square(x) + eps),
        norm(bottom=lambda x, eps: np.sqrt(mean_square(x) + eps), after=lambda y, g: y),
        norm(bottom=lambda x, eps: np.sqrt(mean_square(x) + eps), after=lambda y, g: y + g),
        norm(bottom=lambda x, eps: np.sqrt(mean_square(x) + eps), after=lambda y, g: y * (1 + g)),
        norm(bottom=lambda x, eps: np.sqrt(x.var(-1, keepdims=True) + eps)),
        norm(bottom=lambda x, eps: np.mean(np.abs(x), -1, keepdims=True) + eps),
        norm(
            top=lambda x: x - x.mean(-1, keepdims=True),
            bottom=lambda x, eps: np.sqrt(x.var(-1, keepdims=True) + eps),
        ),
        norm(bottom=lambda x, eps: np.sqrt(np.mean(x**2) + eps)),
        norm(bottom=lambda x, eps: np.sqrt(np.mean(x**2, axis=0) + eps)),
        lambda x, g, eps: rms_norm(x, g, eps)[0],
        rms_in_place,
    ],
    "ex02.rope": [
        half_split,
        lambda x, p, base: half_split(x, p, base**0.5),
        lambda x, p, base: x,
        with_angles(lambda p, base, i, d: p * base ** (-1.0 * i / d)),
        with_angles(lambda p, base, i, d: -right_angle(p, base, i, d)),
        with_angles(lambda p, base, i, d: (p + 1) * base ** (-2.0 * i / d)),
        with_angles(lambda p, base, i, d: base ** (-2.0 * i / d)),
        with_angles(lambda p, base, i, d: p * base ** (2.0 * i / d)),
        with_angles(lambda p, base, i, d: p * 10000.0 ** (-2.0 * i / d)),
        with_angles(lambda p, base, i, d: np.degrees(right_angle(p, base, i, d))),
        with_angles(right_angle, cos=np.sin, sin=np.cos),
        with_angles(lambda p, base, i, d: right_angle(p, base, i + 1, d)),
        first_half_overwritten,
        rope_in_place,
    ],
    "ex02.attention": [
        attend(lambda s, d: softmax(s)),
        attend(lambda s, d: softmax(s / d)),
        attend(lambda s, d: softmax(s * np.sqrt(d))),
        attend(lambda s, d: naive(s / np.sqrt(d))),
        attend(lambda s, d: all_scores_alike(s)),
        attend(lambda s, d: s / np.sqrt(d)),
        attend(lambda s, d: np.exp((s - s.max()) / np.sqrt(d))),
        attend(lambda s, d: 1 / (1 + np.exp(np.clip(-s / np.sqrt(d), -50, 50)))),
        attend(lambda s, d: np.eye(len(s))[np.argmax(s)]),
        lambda q, K, V: softmax(K[:-1] @ q / np.sqrt(len(q))) @ V[:-1] if len(K) > 1 else V[0],
        lambda q, K, V: softmax(K @ q / np.sqrt(len(q))),
        lambda q, K, V: softmax(K @ q / np.sqrt(len(K))) @ V,
        lambda q, K, V: softmax(V @ q / np.sqrt(len(q))) @ K,
    ],
    "ex02.kv_heads": [
        lambda n, kv: np.arange(n) % kv,
        lambda n, kv: np.arange(n) // kv,
        lambda n, kv: np.arange(n) // (n // kv) + 1,
        lambda n, kv: np.arange(n) % (n // kv),
        lambda n, kv: np.arange(n) * kv / n,
        lambda n, kv: np.repeat(np.arange(n // kv), kv),
        lambda n, kv: np.repeat(np.arange(kv), n // kv)[::-1],
        lambda n, kv: np.arange(kv),
        lambda n, kv: np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]),
        lambda n, kv: np.minimum(np.arange(n), kv - 1),
        lambda n, kv: np.round(np.arange(n) * kv / n).astype(int),
    ],
    "ex02.top_k": [
        lambda z, k: np.argsort(z)[:k],
        lambda z, k: np.argsort(z, kind="stable")[::-1][:k],
        lambda z, k: np.sort(z)[::-1][:k],
        lambda z, k: np.argsort(z, kind="stable")[-k:],
        lambda z, k: np.sort(np.argsort(-z, kind="stable")[:k]),
        lambda z, k: np.argsort(-z, kind="stable")[: k + 1],
        lambda z, k: np.argsort(-z, kind="stable")[: k - 1],
        lambda z, k: np.argsort(-z, kind="stable")[:3],
        lambda z, k: np.argsort(-np.abs(z), kind="stable")[:k],
        lambda z, k: int(np.argmax(z)),
        lambda z, k: np.flatnonzero(z >= np.sort(z)[::-1][min(k, len(z)) - 1]),
        lambda z, k: np.argsort(np.argsort(-z, kind="stable"))[:k],
    ],
    "ex02.first_row": [0, 2, 11, 12, 6, 13, -1, 0.5, 1.5, "1", True, [1]],
    "ex02.cache": [
        2 * 30 * 9 * 64 * 2 * 1000,
        30 * 3 * 64 * 2 * 1000,
        2 * 30 * 3 * 64 * 1000,
        2 * 3 * 64 * 2 * 1000,
        2 * 30 * 64 * 2 * 1000,
        2 * 30 * 3 * 64 * 2,
        2 * 30 * 3 * 64 * 4 * 1000,
        2 * 30 * 3 * 64 * 16 * 1000,
        2 * 30 * 3 * 64 * 2 * 1024,
        30 + 3 + 64 + 1000,
        23.04,
    ],
}
