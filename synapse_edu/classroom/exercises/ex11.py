"""Exercises of chapter 11: what sharing saves, what DPO changes, log-probabilities of answers."""

import numpy as np

from ..tasks import Task, register
from .draws import normal, pick


def _total(weights, cache, shared):
    return (weights + cache) / (weights + cache / shared)


register(
    Task(
        "ex11.saving",
        right=_total,
        rtol=5e-3,
        question=(
            "A model's weights take {weights} GiB. With a key/value head for every query head its "
            "cache takes {cache} GiB; sharing makes the cache {shared} times smaller. How many "
            "times smaller does the memory of both together become?"
        ),
        given={"weights": 16, "cache": 4, "shared": 4},
        draw=lambda rng: {
            "weights": int(rng.integers(5, 40)),
            "cache": int(rng.integers(2, 30)),
            "shared": pick(rng, 3, 5, 6, 8),
        },
        hints=(
            "Write both sums down, before and after.",
            "The weights do not become smaller.",
            "({weights} + {cache}) / ({weights} + {cache} / {shared})",
        ),
        mistakes=lambda weights, cache, shared: [
            (shared, "only the cache becomes smaller, not the weights"),
            (1 / _total(weights, cache, shared), "upside down"),
            (
                (weights + cache) / weights,
                "a part of the cache stays",
            ),
            (
                (weights + cache) - (weights + cache / shared),
                "this is how many GiB are saved",
            ),
        ],
    )
)


def log_softmax(z):
    z = np.asarray(z, float)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def sequence_logprob(logits, ids):
    return float(log_softmax(logits)[np.arange(len(ids)), ids].sum())


def _answers(rng):
    return [
        (normal(rng, 4, 6), rng.integers(0, 6, 4)),
        (normal(rng, 300, 12, scale=4), rng.integers(0, 12, 300)),
        (normal(rng, 3, 5, scale=900), rng.integers(0, 5, 3)),
        (normal(rng, 1, 3), np.array([2])),
    ]


register(
    Task(
        "ex11.logprob",
        right=sequence_logprob,
        hints=(
            "The probability of an answer of 300 tokens is a product of 300 numbers below 1. What "
            "does float64 make of it? And of e^900?",
            "Work with logarithms from the start: log soft-max is z − max − log Σ e^(z − max).",
            "Pick row t's entry ids[t], and add: do not divide by the length.",
        ),
        inputs=_answers,
        mistakes=lambda: [
            (
                lambda z, i: sequence_logprob(z, i) / len(i),
                "this is the average of a token; asked is the sum",
            ),
            (
                lambda z, i: float(z[np.arange(len(i)), i].sum()),
                "these are logits: the soft-max is missing",
            ),
            (
                lambda z, i: float(
                    log_softmax(z.ravel())[np.arange(len(i)) * z.shape[1] + i].sum()
                ),
                "the soft-max runs over all rows together",
            ),
            (lambda z, i: -sequence_logprob(z, i), "the sign is wrong"),
        ],
        rtol=1e-5,
    )
)


def dpo_loss(chosen, chosen_ref, other, other_ref, beta):
    z = beta * ((chosen - chosen_ref) - (other - other_ref))
    return float(np.logaddexp(0, -z))


def _four(rng, scale=3.0):
    return tuple(float(x) for x in -np.abs(rng.normal(0, scale, 4)) - 0.1)


register(
    Task(
        "ex11.dpo",
        right=dpo_loss,
        hints=(
            "Δ is a difference of two differences: how much likelier than in the reference each "
            "answer became.",
            "−log σ(z) = log(1 + e^(−z)). With z = −2 000 that is 2 000, not infinity.",
            "z = beta * ((chosen - chosen_ref) - (other - other_ref)); np.logaddexp(0, -z)",
        ),
        inputs=lambda rng: [
            (np.log(0.08), np.log(0.1), np.log(0.02), np.log(0.1), 1.0),
            (*_four(rng), 0.1),
            (*_four(rng), 0.7),
            (-2000.0, -10.0, -10.0, -500.0, 1.0),
            (-10.0, -900.0, -2000.0, -10.0, 1.0),
            (-5.0, -5.0, -7.0, -7.0, 0.3),
        ],
        mistakes=lambda: [
            (lambda a, b, c, d, beta: dpo_loss(c, d, a, b, beta), "the two answers are exchanged"),
            (lambda a, b, c, d, beta: dpo_loss(a, 0, c, 0, beta), "the reference is missing"),
            (lambda a, b, c, d, beta: dpo_loss(a, b, c, d, 1.0), "β is missing"),
            (
                lambda a, b, c, d, beta: (
                    1 / (1 + float(np.exp(np.clip(-beta * (a - b - c + d), -700, 700))))
                ),
                "this is σ(βΔ); asked is −log of it",
            ),
        ],
        rtol=1e-6,
        atol=1e-12,
    )
)


def _likelier(reference, chosen, other):
    return [
        bool(chosen > reference),
        round(float(np.log(2)), 4),
        round(float(np.log1p(other / chosen)), 4),
    ]


register(
    Task(
        "ex11.ratio",
        right=_likelier,
        rtol=1e-3,
        atol=1e-4,
        question=(
            "The reference gives both answers the probability {reference}. After training the "
            "preferred one has {chosen}, the other {other}. Did the preferred one become likelier "
            "(1 for yes, 0 for no)? And what is the DPO loss before and after, with β = 1? Answer "
            "with a list of three numbers."
        ),
        given={"reference": 0.1, "chosen": 0.08, "other": 0.02},
        draw=lambda rng: {
            "reference": 0.2,
            "chosen": round(float(rng.uniform(0.1, 0.19)), 2),
            "other": round(float(rng.uniform(0.01, 0.05)), 3),
        },
        hints=(
            "Compare the preferred answer with itself, before and after.",
            "Before training both ratios are 1, so Δ = 0 and the loss is log 2. After it, Δ = "
            "log({chosen} / {other}), because the references cancel.",
            "log(1 + {other} / {chosen}) is the loss after.",
        ),
        mistakes=lambda reference, chosen, other: [
            (
                [1, *_likelier(reference, chosen, other)[1:]],
                "only the ratio rose: the preferred answer itself became less likely",
            ),
            (
                [0, np.log(2), np.log1p(chosen / other)],
                "the ratio is upside down: the loss falls",
            ),
            (
                [0, 1.0, np.log1p(other / chosen)],
                "with Δ = 0 the loss is log 2",
            ),
            ([0, np.log(2), np.log(2)], "the loss depends on the ratio, and that changed"),
        ],
    )
)
