"""Wrong answers to the exercises of chapter 11."""

import numpy as np

from synapse_edu.classroom.exercises.ex11 import dpo_loss, log_softmax, sequence_logprob


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def picked(table):
    return lambda z, i: table(z)[np.arange(len(i)), i]


def naive(z, i):
    e = np.exp(z)
    return float(np.log((e / e.sum(-1, keepdims=True))[np.arange(len(i)), i]).sum())


def sigmoid(x):
    return 1 / (1 + float(np.exp(np.clip(-x, -700, 700))))


WRONG = {
    "ex11.saving": [4, 17 / 20, 1.25, 3, 20, 1.0, 0.8, 2.5, 16 / 17, 17, 5, 1.6],
    "ex11.logprob": [
        lambda z, i: sequence_logprob(z, i) / len(i),
        lambda z, i: float(z[np.arange(len(i)), i].sum()),
        lambda z, i: -sequence_logprob(z, i),
        lambda z, i: float(np.exp(sequence_logprob(z, i))),
        lambda z, i: float(picked(softmax)(z, i).prod()),
        lambda z, i: float(np.log(picked(softmax)(z, i).prod())),
        lambda z, i: float(picked(softmax)(z, i).sum()),
        lambda z, i: float(np.log(picked(softmax)(z, i).mean())),
        lambda z, i: float(log_softmax(z.T)[i % len(z.T), np.arange(len(i))].sum()),
        lambda z, i: float(log_softmax(z).max(axis=-1).sum()),
        lambda z, i: float(log_softmax(z)[:, i[0]].sum()),
        lambda z, i: float(picked(log_softmax)(z, i)[-1] - 1e-3),
        lambda z, i: sequence_logprob(z, i) / np.log(2),
        naive,
        lambda z, i: picked(log_softmax)(z, i),
    ],
    "ex11.dpo": [
        lambda a, b, c, d, beta: dpo_loss(c, d, a, b, beta),
        lambda a, b, c, d, beta: dpo_loss(a, 0, c, 0, beta),
        lambda a, b, c, d, beta: dpo_loss(a, b, c, d, 1.0),
        lambda a, b, c, d, beta: dpo_loss(a, b, 0, 0, beta),
        lambda a, b, c, d, beta: dpo_loss(b, a, d, c, beta),
        lambda a, b, c, d, beta: sigmoid(beta * (a - b - c + d)),
        lambda a, b, c, d, beta: -dpo_loss(a, b, c, d, beta),
        lambda a, b, c, d, beta: -float(np.log(sigmoid(beta * (a - b - c + d)) + 1e-12)),
        lambda a, b, c, d, beta: float(np.log(1 + np.exp(-beta * (a - b - c + d)))),
        lambda a, b, c, d, beta: beta * dpo_loss(a, b, c, d, 1.0),
        lambda a, b, c, d, beta: dpo_loss(a, b, c, d, 1 / beta),
        lambda a, b, c, d, beta: dpo_loss(a + b, 0, c + d, 0, beta),
        lambda a, b, c, d, beta: max(0.0, 1 - beta * (a - b - c + d)),
        lambda a, b, c, d, beta: dpo_loss(a, b, c, d, beta) / np.log(2),
    ],
    "ex11.ratio": [
        [1, 0.6931, 0.2231],
        [0, 0.6931, 1.6094],
        [0, 1.0, 0.2231],
        [0, 0.6931, 0.6931],
        [0, 0.2231, 0.6931],
        [0, 0.6931],
        [0, 0.6931, 0.25],
        [0, 0.6931, 4.0],
        [0, 0.6931, 1.3863],
        [0.8, 0.6931, 0.2231],
        [0, 0.5, 0.2],
        [0, 2.3026, 2.5257],
    ],
}
