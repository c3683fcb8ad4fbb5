"""Post-training of the built-in model, recorded: two judges, two rounds each, and DPO.

    python -m synapse_edu.study.posttraining --out posttraining.json      # some minutes

The request is always the same: here are some notes, say what follows from them.  The notes leave
one place open.  What the model says to other notes, with pairs of person and thing that it never
saw in training, is measured before and after.
"""

import os

if __name__ == "__main__":  # before NumPy is imported: the bits depend on it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..model.load import load
from . import judge, machine, notes, preference, rejection, storyworld
from .answers import draw
from .export import parameters
from .scores import scores

JUDGES = {"faithful": judge.faithful, "fluent": judge.fluent}
RATES = {"rate 1e-4": 1e-4, "rate 3e-4": 3e-4, "rate 1e-3": 1e-3}


@dataclass(frozen=True)
class Size:
    """How much of everything: notes to learn from, answers drawn to each, notes of the test."""

    n_notes: int = 48
    n_answers: int = 6
    n_test: int = 48
    n_rounds: int = 2
    n_stories: int = 80


def requests(n, seed, kept=False):
    """The texts of `n` notes; `kept` ones have pairs that never occur in training."""
    return [notes.notes(f"{seed}/{kept}/{i}", held_out=kept).text for i in range(n)]


def tell(p, config, tokenizer, size=Size()):
    """What the model answers to the notes of the test, and how it does in ordinary stories."""
    asked = requests(size.n_test, "test", kept=True)
    rows = draw(p, config, tokenizer, asked, 3, seed=99)
    kept = storyworld.stories(size.n_stories, 30_000, held_out=True)
    found = rejection.report([answer for row in rows for answer in row])
    return found | {"stories": scores(p, config, tokenizer, kept)["all"]}


def rounds(p, config, tokenizer, judge, seed=1, size=Size()):
    """Draw, let the judge select, train; again from there.  Returns a report for each round."""
    reports = []
    for number in range(size.n_rounds):
        asked = requests(size.n_notes, f"{seed}/{number}")
        rows = draw(p, config, tokenizer, asked, size.n_answers, seed=10 * seed + number)
        selected = rejection.select(p, config, rows, judge)
        p, losses = rejection.fine_tune(p, config, selected, replace(rejection.GENTLE, seed=seed))
        reports.append(
            {
                "drawn": rejection.report([answer for row in rows for answer in row]),
                "selected": rejection.report(selected),
                "loss": losses[-1],
                "after": tell(p, config, tokenizer, size),
            }
        )
    return reports


def drawn_pairs(p, config, tokenizer, seed=1, size=Size()):
    """(best, worst) answers by the faithful judge: to notes to learn from, and to unseen ones."""
    found = []
    for asked in (requests(size.n_notes, f"{seed}/dpo"), requests(24, "unseen", kept=True)):
        rows = draw(p, config, tokenizer, asked, size.n_answers, seed)
        found.append(rejection.pairs(p, config, rows, judge.faithful))
    return found


def preferences(p, config, tokenizer, pairs, rate, seed=1, size=Size(), every=5):
    """DPO on pairs that the faithful judge chose, with the course of the probabilities.

    Parameters
    ----------
    pairs : (list, list)
        As `drawn_pairs` gives them.
    rate : float
        The learning rate's peak.

    Returns
    -------
    dict
        ``losses`` of each step; ``course``: every few steps [step, and the mean log-probability
        of preferred and other answers, in pairs of the training and then of unseen notes];
        ``fell``: share of pairs whose preferred, and whose other answer became less likely, for
        training and unseen; ``ahead``: share of pairs with Δ > 0; ``after``: as `tell`.
    """
    known, unseen = pairs
    before = [preference.reference(p, config, side) for side in pairs]  # (2, n) each
    course = []

    def after(step, q):
        if step % every == 0:
            means = [preference.reference(q, config, x[:20]).mean(1) for x in (known, unseen)]
            course.append([step, *np.concatenate(means).tolist()])

    recipe = replace(preference.CAREFUL, learning_rate=rate, final_rate=rate / 10, seed=seed)
    q, losses = preference.train(p, config, known, recipe, after=after)
    moved = [
        preference.reference(q, config, side) - b for side, b in zip(pairs, before, strict=True)
    ]
    return {
        "pairs": [len(known), len(unseen)],
        "losses": losses,
        "course": course,
        "fell": [[float((side < 0).mean()) for side in x] for x in moved],
        "ahead": [float((x[0] > x[1]).mean()) for x in moved],
        "after": tell(q, config, tokenizer, size),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Post-training of the built-in model.")
    parser.add_argument("--out", type=Path, default=Path("posttraining.json"))
    parser.add_argument("--seed", type=int, default=1, help="the first of three")
    options = parser.parse_args(arguments)
    seeds = [options.seed + i for i in range(3)]
    model, start = load("built-in"), time.perf_counter()
    given = parameters(model), model.config, model.tokenizer
    report = {"machine": machine.describe(), "seeds": seeds, "before": tell(*given)}
    for name, judged in JUDGES.items():
        report[name] = [rounds(*given, judged, seed) for seed in seeds]
    pairs = [drawn_pairs(*given, seed) for seed in seeds]
    for name, rate in RATES.items():
        report[name] = [
            preferences(*given, both, rate, seed) for both, seed in zip(pairs, seeds, strict=True)
        ]
    report["minutes"] = (time.perf_counter() - start) / 60
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
