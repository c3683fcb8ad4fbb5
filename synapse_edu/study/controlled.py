"""Small experiments on the built-in model, one done right and three done wrong.

    python -m synapse_edu.study.controlled --out controlled.json      # about ten minutes

All of them go on from the built-in model, whose training rows had 128 positions, and teach it to
find a fact in 192.  They differ in an `Arm`: what is in the text, how long the documents are, the
rate, the steps.

The question of the badly done experiments: is it better when the filler holds nothing about the
weather?  A higher rate, more steps, or the tests among the data move the score by more than that.
An experiment that changes one of them together with the filler tells about that one, and may even
hide that the filler did harm.
"""

import os

if __name__ == "__main__":  # before NumPy is imported: the bits depend on it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import random
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..model.load import load
from . import machine, storyworld
from .backward import loss_and_gradients
from .curriculum import document, pack
from .export import parameters
from .lengthen import lengthened
from .needle import accuracy, solved
from .recipe import Recipe
from .scores import scores
from .tuning import tune

N_POS = 192  # positions of a test
N_TOKENS = 2048  # of a step, in whatever rows
LENGTHS = (48, 96, 128, 192, 256, 384)


@dataclass(frozen=True)
class Arm:
    """What one arm of an experiment is given; the defaults are the arm to compare with.

    Attributes
    ----------
    weather : float
        Share of the filler sentences that are about the weather.
    n_words, n_pos : int
        Length of the documents, and positions of a row.  A step always has 2 048 positions.
    learning_rate, final_rate : float
    n_steps : int
    tests : float
        Share of the documents that are the very cases of the test, answered.
    """

    weather: float = 0.3
    n_words: int = 250
    n_pos: int = 256
    learning_rate: float = 3e-4
    final_rate: float = 3e-5
    n_steps: int = 40
    tests: float = 0.0

    @property
    def recipe(self):
        return Recipe(
            n_steps=self.n_steps, n_batch=N_TOKENS // self.n_pos, n_pos=self.n_pos,
            learning_rate=self.learning_rate, final_rate=self.final_rate, n_warmup=5,
        )  # fmt: skip


START = Arm()
FAST = replace(START, learning_rate=1e-3, final_rate=1e-4)
LONG = replace(FAST, n_steps=100)
ARMS = {
    "as it was": START,
    "no weather": replace(START, weather=0.0),
    "as it was, rate × 3": FAST,
    "no weather, rate × 3": replace(FAST, weather=0.0),
    "as it was, steps × 2.5": replace(START, n_steps=100),
    "no weather, steps × 2.5": replace(START, n_steps=100, weather=0.0),
    "no weather, tests in the data": replace(START, weather=0.0, tests=0.5),
    "rate × 3, held": replace(FAST, final_rate=1e-3),
    "long documents": LONG,
    "short documents": replace(LONG, n_words=110, n_pos=128),
}


def run(p, config, tokenizer, arm, seed=1):
    """Train one arm from the parameters `p`; returns new parameters and the losses."""
    cases = [solved(tokenizer, "retrieve", N_POS, depth, f"test/{i}") for depth, i in tests(20)]

    def gradients(p, step):
        rng = random.Random(f"{seed}/{step}")

        def draw():
            if arm.tests and rng.random() < arm.tests:
                ids = rng.choice(cases)
                return ids, [0.0] * (len(ids) - 1) + [5.0]
            return document(tokenizer, lengthened(rng, arm.n_words, weather=arm.weather), 5.0)

        return loss_and_gradients(p, config, *pack(draw, arm.recipe.n_batch, arm.n_pos))

    return tune(p, gradients, arm.recipe)


def tests(n):
    """(depth, number) of the cases of the test."""
    return [(depth, i) for depth in (0.1, 0.5, 0.9) for i in range(n)]


def found(p, config, tokenizer, n=20, seed="test"):
    """The score: share of facts found in 192 positions.  Another seed gives other cases."""
    return float(accuracy(p, config, tokenizer, "retrieve", N_POS, n=n, seed=seed).mean())


def by_length(p, config, tokenizer, n=10):
    """Shares found by kind and length, and the rule scores of ordinary stories."""
    table = {
        kind: [
            float(accuracy(p, config, tokenizer, kind, length, n=n, seed="length").mean())
            for length in LENGTHS
        ]
        for kind in ("retrieve", "own", "combine")
    }
    kept = storyworld.stories(100, 20_000, held_out=True)
    return table | {"stories": scores(p, config, tokenizer, kept)["all"]}


def measure(p, config, tokenizer, seeds, quiet=False):
    """Run every arm with every seed, and score it on the test's cases and on fresh ones."""
    from tqdm.auto import tqdm

    result = {name: {"arm": asdict(arm), "runs": []} for name, arm in ARMS.items()}
    todo = [(name, seed) for name in ARMS for seed in seeds]
    for name, seed in tqdm(todo, unit="run", disable=quiet):
        q, losses = run(p, config, tokenizer, ARMS[name], seed)
        one = {"seed": seed, "test": found(q, config, tokenizer), "loss": losses[-1]}
        one["fresh"] = found(q, config, tokenizer, seed="fresh")
        if name in ("long documents", "short documents"):
            one |= by_length(q, config, tokenizer)
        result[name]["runs"].append(one)
    return result


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Small experiments on the built-in model.")
    parser.add_argument("--out", type=Path, default=Path("controlled.json"))
    parser.add_argument("--seed", type=int, default=1, help="the first of three")
    options = parser.parse_args(arguments)
    seeds = [options.seed + i for i in range(3)]
    model, start = load("built-in"), time.perf_counter()
    p, config, tokenizer = parameters(model), model.config, model.tokenizer
    before = {
        "test": found(p, config, tokenizer),
        "fresh": found(p, config, tokenizer, seed="fresh"),
    }
    report = {
        "machine": machine.describe(),
        "seeds": seeds,
        "lengths": LENGTHS,
        "before": before | by_length(p, config, tokenizer),
        "arms": measure(p, config, tokenizer, seeds),
    }
    report["minutes"] = (time.perf_counter() - start) / 60
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
