"""Rejection sampling: draw several answers, let a judge keep one, train on what it kept.

The model answers each request a few times.  A judge picks one answer of each row.  Training on
the picked ones makes the model more like them, whatever the judge liked about them.
"""

import random

import numpy as np

from .answers import Batch, log_probabilities
from .backward import loss_and_gradients
from .judge import BROKEN, FALSE, SUPPORTED, UNTOLD
from .recipe import Recipe
from .tuning import tune

GENTLE = Recipe(n_steps=30, n_batch=16, learning_rate=3e-4, final_rate=3e-5, n_warmup=5)


def select(p, config, rows, judge):
    """The answer of each row that a judge ranks first; of equals the one drawn first.

    Parameters
    ----------
    p : dict of str → ndarray of float32
        Of the model that drew the answers.
    config : Config
    rows : list of list of Answer
        As `answers.draw` gives them.
    judge : function
        (Judged, mean log-probability of a token) → a rank; more is better.

    Returns
    -------
    list of Answer
    """
    return [max(row, key=rank) for row, rank in _ranked(p, config, rows, judge)]


def pairs(p, config, rows, judge):
    """(best, worst) of each row; rows in which all answers rank equal are left out."""
    found = []
    for row, rank in _ranked(p, config, rows, judge):
        best, worst = max(row, key=rank), min(row, key=rank)
        if rank(best) != rank(worst):
            found.append((best, worst))
    return found


def _ranked(p, config, rows, judge):
    """Each row, and the function that ranks its answers."""
    answers = [answer for row in rows for answer in row]
    sums = log_probabilities(p, config, answers)  # (n,)
    means = {id(a): x / len(a.ids) for a, x in zip(answers, sums, strict=True)}
    for row in rows:
        yield row, lambda answer: judge(answer.judged, means[id(answer)])


def fine_tune(p, config, answers, recipe=GENTLE):
    """Train on some answers (SFT): the likelihood of their tokens, not of the notes'.

    Returns
    -------
    p : dict of str → ndarray of float32
        New parameters.
    losses : list of float
        Nats a token, of each step.
    """

    def gradients(p, step):
        rng = random.Random(f"{recipe.seed}/{step}")
        batch = Batch.of(rng.sample(answers, min(recipe.n_batch, len(answers))))
        given = batch.tokens, batch.targets, batch.weights, batch.starts
        return loss_and_gradients(p, config, *given)

    return tune(p, gradients, recipe)


def report(answers):
    """What some answers are like.

    Parameters
    ----------
    answers : list of Answer

    Returns
    -------
    dict of str → float
        ``sentences`` an answer; share of sentences that are ``supported``, ``false``,
        ``untold``, ``broken``; share of answers that are ``flawless`` (all supported, at least
        one sentence) and that are ``silent`` (no sentence); share of sentences that are
        ``repeated`` in their answer.
    """
    judged = [answer.judged for answer in answers]
    n = sum(len(j.verdicts) for j in judged)
    found = {"sentences": n / len(judged)}
    for verdict in (SUPPORTED, FALSE, UNTOLD, BROKEN):
        found[verdict] = sum(j.count(verdict) for j in judged) / max(1, n)
    found["flawless"] = float(np.mean([j.n_wrong == 0 and j.n_distinct > 0 for j in judged]))
    found["silent"] = float(np.mean([not j.verdicts for j in judged]))
    found["repeated"] = sum(j.n_repeated for j in judged) / max(1, n)
    return found
