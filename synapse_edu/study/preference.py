"""DPO: training on pairs of answers, of which one was preferred (Rafailov et al., 2023).

For a prompt x with the preferred answer y_w and the other one y_l,

    Δ = log π(y_w|x) / π_ref(y_w|x) − log π(y_l|x) / π_ref(y_l|x),    loss = −log σ(β Δ).

Only the difference counts.  Both answers may become less likely while the loss falls.
"""

import random

import numpy as np

from .answers import Batch, answer_sums, log_probabilities, log_shares
from .backward import backward, forward
from .recipe import Recipe
from .tuning import tune

F32 = np.float32
CAREFUL = Recipe(n_steps=30, n_batch=8, learning_rate=1e-4, final_rate=1e-5, n_warmup=5)


def delta(chosen, rejected, reference_chosen, reference_rejected):
    """Δ of log-probabilities in nats; numbers or arrays."""
    return (chosen - reference_chosen) - (rejected - reference_rejected)


def dpo(delta, beta=0.1):
    """The loss −log σ(β Δ), and its slope −β σ(−β Δ) with respect to Δ.

    Examples
    --------
    >>> loss, slope = dpo(np.log(4.0), beta=1)     # a ratio that rose from 1 to 4
    >>> print(f"{dpo(0.0, beta=1)[0]:.4f} {loss:.4f} {slope:.1f}")
    0.6931 0.2231 -0.2
    """
    loss = np.logaddexp(0.0, -beta * delta)
    return loss, -beta * np.exp(-np.logaddexp(0.0, beta * delta))


def loss_and_gradients(p, config, batch, reference, beta=0.1):
    """The mean loss over pairs, and its gradients.

    Parameters
    ----------
    p : dict of str → ndarray of float32
    config : Config
    batch : Batch
        2n rows: the n preferred answers, then the n others in the same order.
    reference : ndarray of float64, shape (2n,)
        log π_ref of each row's answer.
    beta : float

    Returns
    -------
    loss : float
    grads : dict of str → ndarray of float32
    """
    n = len(reference) // 2
    logits, tape = forward(p, config, batch.tokens, batch.starts)  # (2n·T, V)
    sums = answer_sums(logits, batch)  # (2n,)
    losses, slope = dpo(delta(sums[:n], sums[n:], reference[:n], reference[n:]), beta)  # (n,) each
    towards = (
        np.concatenate([slope, -slope])[:, None] / n * batch.weights
    )  # (2n, T): d loss/d log p
    rows = np.arange(batch.targets.size)  # (2n·T,)
    dlogits = -np.exp(log_shares(logits))  # (2n·T, V)
    dlogits[rows, batch.targets.ravel()] += 1  # d log p/d logits = 1 at the target − the shares
    dlogits *= towards.reshape(-1, 1).astype(logits.dtype)
    return float(losses.mean()), backward(p, config, batch.tokens, dlogits, tape)


def train(p, config, pairs, recipe=CAREFUL, beta=0.1, after=None):
    """Move a copy of the parameters towards the preferred answers.

    Parameters
    ----------
    p : dict of str → ndarray of float32
        The start, and the reference.
    config : Config
    pairs : list of (Answer, Answer)
        Preferred, and not.
    recipe : Recipe
        `n_batch` is the number of pairs in a step.
    beta : float
        The smaller, the further the parameters may move from the reference.
    after : function, optional
        As `tuning.tune` takes it.

    Returns
    -------
    p : dict of str → ndarray of float32
    losses : list of float
    """
    kept = reference(p, config, pairs)  # (2, n)

    def gradients(p, step):
        rng = random.Random(f"{recipe.seed}/{step}")
        some = rng.sample(range(len(pairs)), min(recipe.n_batch, len(pairs)))
        batch = Batch.of([pairs[i][side] for side in (0, 1) for i in some])
        return loss_and_gradients(p, config, batch, kept[:, some].ravel(), beta)

    return tune(p, gradients, recipe, after)


def reference(p, config, pairs):
    """log π of the preferred answers and of the others: float64 (2, n)."""
    answers = [pair[side] for side in (0, 1) for pair in pairs]
    return log_probabilities(p, config, answers).reshape(2, -1)
