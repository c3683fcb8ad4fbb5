"""Exercises of chapter 04: the mask, attention in pieces, the online soft-max, reading weights."""

import math

import numpy as np

from ...model import batched
from ..tasks import Task, register
from .draws import normal, pick


def causal_mask(n, start):
    mask = batched.causal_mask(n, start)
    return np.zeros((1, start + 1), np.float32) if mask is None else mask


def _masked(allowed, hide=-np.inf):
    return np.where(allowed, 0.0, hide)


def _places(n, start):
    return start + np.arange(n)[:, None], np.arange(start + n)  # of queries, of keys


register(
    Task(
        "ex04.mask",
        right=causal_mask,
        hints=(
            "How many keys are there in all? That is the number of columns.",
            "Row i is the token at position start + i. It sees the columns 0 to start + i.",
            "np.where(np.arange(start + n) <= start + np.arange(n)[:, None], 0.0, -np.inf)",
        ),
        inputs=lambda rng: [
            (3, 5),
            (4, 0),
            (1, 6),
            (int(rng.integers(2, 7)), int(rng.integers(1, 9))),
            (1, 0),
        ],
        mistakes=lambda: [
            (
                lambda n, s: _masked(np.arange(s + n) < _places(n, s)[0]),
                "mask off by one: a token must see itself",
            ),
            (
                lambda n, s: _masked(np.arange(s + n) <= _places(n, s)[0] + 1),
                "mask off by one: a token sees the next one",
            ),
            (
                lambda n, s: _masked(np.arange(s + n) <= np.arange(n)[:, None]),
                "the tokens in the cache are hidden: row i stands at position start + i",
            ),
            (lambda n, s: np.zeros((n, s + n)), "nothing is hidden"),
            (
                lambda n, s: _masked(np.arange(s + n) <= _places(n, s)[0], 1.0),
                "ones hide nothing: the mask is added to the scores, so it takes −∞",
            ),
        ],
    )
)


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attend(Q, K, V, start, mask=causal_mask):
    Q, K, V = (np.asarray(x, float) for x in (Q, K, V))
    return softmax(Q @ K.T / np.sqrt(Q.shape[1]) + mask(len(Q), start)) @ V


def _pieces(rng, n, start, d=8):
    return normal(rng, n, d), normal(rng, start + n, d), normal(rng, start + n, d), start


def shifted(off):
    """A mask that takes row i for the token at start + i + off."""
    return lambda n, s: _masked(np.arange(s + n) <= np.maximum(_places(n, s)[0] + off, 0))


register(
    Task(
        "ex04.attend",
        right=attend,
        hints=(
            "With start = 0 the function is right. What changes when the cache is not empty?",
            "np.tril of an (n, start + n) matrix begins at the wrong column: row i has to see "
            "start + i + 1 keys. It also hides with a 0, which is a score like any other.",
            "allowed = np.tril(np.ones(s.shape), k=start) > 0, and s = np.where(allowed, s, "
            "-np.inf).",
        ),
        inputs=lambda rng: [
            _pieces(rng, 3, 0),
            _pieces(rng, 3, 4),
            _pieces(rng, 1, 5),
            _pieces(rng, 5, int(rng.integers(1, 8)), 4),
        ],
        mistakes=lambda: [
            (
                lambda Q, K, V, start: attend(Q, K, V, start, lambda n, s: 0),
                "nothing is hidden",
            ),
            (
                lambda Q, K, V, start: attend(Q, K, V, start, shifted(-start)),
                "mask off by `start`: the new tokens do not see the whole cache",
            ),
            (
                lambda Q, K, V, start: attend(Q, K, V, start, shifted(1)),
                "mask off by one: a token sees the next one",
            ),
            (
                lambda Q, K, V, start: attend(Q * np.sqrt(Q.shape[1]), K, V, start),
                "missing 1/√d",
            ),
            (
                lambda Q, K, V, start: _zero_hidden(Q, K, V, start),
                "hidden scores are 0: soft-max gives them weight; they must be −∞",
            ),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)


def _zero_hidden(Q, K, V, start):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    return softmax(s * np.tril(np.ones(s.shape), k=start)) @ V


def merge(a, b):
    top = max(a[0], b[0])
    wa, wb = math.exp(a[0] - top), math.exp(b[0] - top)
    return np.concatenate([[top, a[1] * wa + b[1] * wb], a[2:] * wa + b[2:] * wb])


def part(s, V):
    """What a part of the keys leaves: largest score, sum of exponentials, weighted sum."""
    e = np.exp(s - s.max())
    return np.concatenate([[s.max(), e.sum()], e @ V])


def _parts(rng, n, m, d=4, scale=1.0):
    s, V = normal(rng, n + m, scale=scale).astype(float), normal(rng, n + m, d).astype(float)
    return part(s[:n], V[:n]), part(s[n:], V[n:])


def _merge_wrong(weigh, top=max):
    def wrong(a, b):
        m = top(a[0], b[0])
        wa, wb = weigh(a[0], b[0], m)
        return np.concatenate([[m, a[1] * wa + b[1] * wb], a[2:] * wa + b[2:] * wb])

    return wrong


register(
    Task(
        "ex04.online_softmax",
        right=merge,
        hints=(
            "Both sums were taken relative to a largest score of their own. Bring them to the same "
            "one before you add.",
            "With M the larger of the two, a part with the largest score m has to be multiplied "
            "by e^(m − M). That factor never exceeds 1.",
            "M = max(a[0], b[0]); wa, wb = np.exp(a[0] - M), np.exp(b[0] - M); then s and o are "
            "each a's times wa plus b's times wb.",
        ),
        inputs=lambda rng: [
            _parts(rng, 4, 3),
            _parts(rng, 3, 5, scale=400.0),
            _parts(rng, 1, 6),
            _parts(rng, 5, 1, scale=400.0),
            _parts(rng, 2, 2, d=1),
        ],
        mistakes=lambda: [
            (_merge_wrong(lambda x, y, m: (1.0, 1.0)), "the sums are added without rescaling"),
            (
                _merge_wrong(lambda x, y, m: (np.exp(m - x), np.exp(m - y))),
                "the factor is upside down: e^(m − M), which is at most 1",
            ),
            (
                _merge_wrong(lambda x, y, m: (np.exp(x - m), 1.0)),
                "only the first part is rescaled",
            ),
            (
                lambda a, b: np.concatenate([merge(a, b)[:2], merge(a, b)[2:] / merge(a, b)[1]]),
                "the average is taken too early: o is the sum that is not yet divided",
            ),
        ],
        rtol=1e-6,
        atol=1e-9,
    )
)


register(
    Task(
        "ex04.reads",
        right=lambda tokens, batch, bits: tokens / -(-tokens // batch) * 8 / bits,
        rtol=1e-3,
        question=(
            "A prompt of {tokens} tokens is processed in batches of at most {batch}. A weight "
            "takes {bits} bits, and each batch reads all weights once. How many "
            "multiply-accumulates are done for each byte of weights that is read?"
        ),
        given={"tokens": 93, "batch": 64, "bits": 4.5},
        draw=lambda rng: {
            "tokens": int(rng.integers(130, 250)),
            "batch": pick(rng, 32, 64, 100),
            "bits": pick(rng, 4.5, 5.5, 8.5, 16),
        },
        hints=(
            "The last batch is smaller, but it reads all weights like any other.",
            "How many batches are there? So often are the weights read, for all {tokens} tokens.",
            "{tokens} / number of batches · 8 / {bits}",
        ),
        mistakes=lambda tokens, batch, bits: [
            (batch * 8 / bits, "the last batch is not full, and reads the weights all the same"),
            (tokens * 8 / bits, "the weights are read once a batch, not once in all"),
            (tokens / -(-tokens // batch), "this is for a weight; a byte holds 8 / bits of them"),
            (8 / bits, "this is decoding: one token a reading"),
        ],
    )
)

register(
    Task(
        "ex04.rows",
        right=lambda n: 1,
        question=(
            "A program forgets the mask. A prompt of {n} tokens goes through the *first* layer at "
            "once. For how many of the {n} tokens is the output of that layer right?"
        ),
        given={"n": 9},
        draw=lambda rng: {"n": int(rng.integers(5, 30))},
        hints=(
            "What does the mask hide from the first token, and what from the last?",
            "Only a token with nothing behind it is not disturbed.",
            "The last token may see everything anyway.",
        ),
        mistakes=lambda n: [
            (0, "one token has nothing after it that could disturb it"),
            (n, "every token but one sees tokens that come after it"),
            (n - 1, "it is the other way round"),
        ],
    )
)
