"""Ablations: one choice changed at a time, everything else equal.

    python -m synapse_edu.study.ablation --out ablations            # about half an hour
    python -m synapse_edu.study.ablation --out ablations --seed 4   # with other seeds

Every arm of an experiment gets the same budget: the same steps, the same rows of text, the same
schedule.  It is trained with three seeds.  A seed decides the text and the first parameters, and
arms that share a parameter begin with the same numbers there; so arms are compared seed by seed.

A finished run is written to a file of its own, whole or not at all.  Started again, the command
keeps the finished runs and begins the others anew.  When all are there it writes
``ablations.json``, which chapter 03 reads.
"""

import os

if __name__ == "__main__":  # before NumPy is imported: the bits depend on it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import platform
import random
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from ..atomic import replacing
from ..errors import BadArgument, FileProblem
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary
from . import ablation_report, machine, storyworld, variants
from .curriculum import encode_story
from .recipe import Recipe
from .story_model import vocabulary
from .training import State, train
from .variants import Design

# plain stories only, every word with the same weight
BUDGET = Recipe(
    n_steps=400, n_batch=4, n_pos=128, learning_rate=3e-3, final_rate=3e-4, n_warmup=40,
    n_repeat=0, least_repeat=0.0, n_drill=0, least_drill=0.0, rule_weight=1.0,
)  # fmt: skip
LONG, BLOCK = 512, 32  # positions of a row that is longer than those of training, and of a part


@dataclass(frozen=True)
class Experiment:
    """One question: designs that differ in one choice.

    Attributes
    ----------
    name, question : str
    arms : dict of str → Design
    reference : str
        The arm that the others are compared with: what Llama does.
    budget : dict
        What differs from the common recipe, for all of its arms.
    """

    name: str
    question: str
    arms: dict
    reference: str
    budget: dict = field(default_factory=dict)


def experiments(base):
    """The experiments around a design, which is Llama's in small.

    Parameters
    ----------
    base : Design
        With a width that 3 divides, so that 8/3 of it is a whole number.
    """
    d = base.n_embd
    if 8 * d % 3 or base.n_ff != 8 * d // 3:
        raise BadArgument(f"The base design needs n_ff = 8/3 of n_embd; {base.n_ff} is not.")

    def arms(**changes):
        return {name: replace(base, **change) for name, change in changes.items()}

    yield from (norm_place(base, n) for n in (2, 8, 16))
    slow = norm_place(base, 16)
    kept = {place: slow.arms[place] for place in ("pre", "post")}
    question = f"{slow.question}, a sixth of the learning rate"
    yield Experiment(f"{slow.name}_slow", question, kept, "pre", {"learning_rate": 5e-4})
    yield Experiment("norm", "RMSNorm or LayerNorm", arms(rms={}, layer={"norm": "layer"}), "rms")
    yield Experiment(
        "positions",
        "where a token stands: rotations, a learned table, nothing",
        arms(rope={}, learned={"positions": "learned"}, none={"positions": "none"}),
        "rope",
    )
    n_head = base.n_head
    yield Experiment(
        "kv_heads",
        "key/value heads: one for each query head, or shared",
        {f"{n}": replace(base, n_head_kv=n) for n in (n_head, n_head // 2, n_head // 4)},
        f"{n_head}",
    )
    yield Experiment(
        "ffn",
        "the feed-forward layer, at equal parameters and not",
        arms(
            swiglu={}, relu={"ffn": "relu", "n_ff": 4 * d}, gelu={"ffn": "gelu", "n_ff": 4 * d},
            swiglu_4d={"n_ff": 4 * d},
        ),
        "swiglu",
    )  # fmt: skip
    yield Experiment(
        "tied", "one table for input and output, or two", arms(tied={}, untied={"tied": False}),
        "tied",
    )  # fmt: skip


def norm_place(base, n_layer):
    """Where the norm stands, at one depth."""
    places = variants.CHOICES["norm_place"]
    arms = {place: replace(base, n_layer=n_layer, norm_place=place) for place in places}
    question = f"where the norm stands, {n_layer} layers"
    return Experiment(f"norm_place_{n_layer}", question, arms, "pre")


# --- the text ----------------------------------------------------------------------------------
def text_rows(tokenizer, n_rows, n_pos, seed, held_out=False):
    """Rows as training has them, each from the beginning of a story, one story after another.

    Returns
    -------
    tokens, targets : ndarray of int, shape (n_rows, n_pos)
    """
    rng = random.Random(seed)
    rows = np.zeros((n_rows, n_pos + 1), np.int64)  # (B, T + 1)
    for row in rows:
        ids = []
        while len(ids) <= n_pos:
            ids += encode_story(tokenizer, storyworld.story(rng, held_out))[0]
        row[:] = ids[: n_pos + 1]
    return rows[:, :-1], rows[:, 1:]


@dataclass(frozen=True)
class Text:
    """What a run is judged by; no run has trained on it.

    ``new`` holds new stories of the kind that training sees, ``new_pairs`` stories with pairs of
    person and thing that training never shows, ``long`` new stories in longer rows.
    """

    new: tuple
    new_pairs: tuple
    long: tuple

    @classmethod
    def of(cls, tokenizer, n_pos, n_rows=32, seed="judge"):
        return cls(
            text_rows(tokenizer, n_rows, n_pos, f"{seed}/new"),
            text_rows(tokenizer, n_rows, n_pos, f"{seed}/pairs", held_out=True),
            text_rows(tokenizer, max(1, n_rows // 2), LONG, f"{seed}/long"),
        )


# --- one run -----------------------------------------------------------------------------------
def one_text(p, design, tokens, targets, weights, starts):
    """Each row as one text, whose stories see the ones before: so rows can be of any length."""
    return variants.loss_and_gradients(p, design, tokens, targets, weights)


def run(design, recipe, tokenizer, text):
    """Train one design and measure it.

    Returns
    -------
    dict
        ``design``, ``recipe``, ``n_params``; ``loss``, ``loss_new_pairs`` in nats a token, None if
        the run broke down; ``loss_by_position``, the mean of each 32 positions of long rows;
        ``broke_at``, the step by which a parameter was no longer finite, or None;
        ``activations`` and ``gradients`` by layer, before training and after; ``curve``;
        ``seconds``.
    """
    p, probe = variants.initial(design, recipe.seed), [rows[:8] for rows in text.new]
    with np.errstate(all="ignore"):  # some designs overflow: that is their result
        before = variants.norms_by_layer(p, design, *probe)
        state, broke_at = State.begin(recipe, p), None
        while state.step < recipe.n_steps and broke_at is None:
            until = min(state.step + 25, recipe.n_steps)
            train(recipe, design, tokenizer, state, until, quiet=True, gradients=one_text)
            if not all(np.isfinite(x).all() for x in p.values()):
                broke_at = state.step
        after = variants.norms_by_layer(p, design, *probe)
        new, pairs, long = (
            variants.token_losses(p, design, *rows)
            for rows in (text.new, text.new_pairs, text.long)
        )
    found = {
        "design": asdict(design),
        "recipe": asdict(recipe),
        "n_params": design.n_params,
        "loss": float(new.mean()),
        "loss_new_pairs": float(pairs.mean()),
        "loss_by_position": long.mean(0).reshape(-1, BLOCK).mean(1).tolist(),
        "broke_at": broke_at,
        "activations": {"before": before[0], "after": after[0]},
        "gradients": {"before": before[1], "after": after[1]},
        "curve": [[step, loss] for step, loss, _ in state.curve],
        "seconds": state.seconds,
    }
    return finite(found)


def finite(x):
    """The same, with None for each number that is none: JSON has no word for infinity."""
    if isinstance(x, dict):
        return {name: finite(part) for name, part in x.items()}
    if isinstance(x, list):
        return [finite(part) for part in x]
    return None if isinstance(x, float) and not np.isfinite(x) else x


# --- all runs ----------------------------------------------------------------------------------
def key(design, base, budget, seed):
    """A run's name: what is changed, and the seed."""
    changes = design.changed_from(base) | budget
    return "_".join([*(f"{k}-{v}" for k, v in changes.items()), f"seed-{seed}"])


def keys(experiment, base, seeds):
    """The keys of an experiment's runs: dict of arm → list in the order of the seeds."""
    return {
        arm: [key(design, base, experiment.budget, seed) for seed in seeds]
        for arm, design in experiment.arms.items()
    }


def runs_of(base, recipe, seeds):
    """Every run that the experiments need, each once: dict of key → (design, recipe)."""
    return {
        key(design, base, e.budget, seed): (design, replace(recipe, seed=seed, **e.budget))
        for e in experiments(base)
        for design in e.arms.values()
        for seed in seeds
    }


def stored(path, design, recipe):
    """A finished run from its file, or None; BadArgument if it was another budget's."""
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = (found["design"], found["recipe"]) == (asdict(design), asdict(recipe))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileProblem(f"{path}: this is not a finished run ({error}). Delete it.") from None
    if not same:
        raise BadArgument(
            f"{path} was run under another budget. Give the same one, or another --out folder."
        )
    return found


def ablate(out, base, tokenizer, recipe=BUDGET, seeds=(1, 2, 3), text=None, say=print):
    """Run what is not finished yet, and put everything together.

    Parameters
    ----------
    out : Path
        Folder of the finished runs.
    base : Design
    tokenizer : Tokenizer
    recipe : Recipe
        The budget of each run; its seed is replaced.
    seeds : sequence of int
    text : Text, optional
    say : function
        Is told about each run.

    Returns
    -------
    dict
        ``base``, ``recipe``, ``seeds``, ``minutes``; ``experiments``, each with its arms: name →
        keys of the runs; ``runs`` by key.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    text = text or Text.of(tokenizer, recipe.n_pos)
    wanted, results = runs_of(base, recipe, seeds), {}
    for i, (name, (design, mine)) in enumerate(wanted.items(), 1):
        path = out / f"{name}.json"
        found = stored(path, design, mine)
        if found is None:
            found = run(design, mine, tokenizer, text) | {"machine": here()}
            with replacing(path) as part:
                part.write_text(json.dumps(found), encoding="utf-8")
        results[name] = found
        loss = "broke down" if found["loss"] is None else f"{found['loss']:.3f} nats"
        say(f"{i:3} of {len(wanted)}  {name:52} {loss:10}  {found['seconds']:4.0f} s")
    return {
        "base": asdict(base),
        "recipe": {k: v for k, v in asdict(recipe).items() if k != "seed"},
        "seeds": list(seeds),
        "minutes": sum(r["seconds"] for r in results.values()) / 60,
        "experiments": {
            e.name: {
                "question": e.question,
                "reference": e.reference,
                "budget": e.budget,
                "arms": keys(e, base, seeds),
            }
            for e in experiments(base)
        },
        "runs": results,
    }


def here():
    """What the numbers are computed on."""
    return machine.describe() | {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description="One choice changed at a time, with three seeds.")
    parser.add_argument(
        "--out", type=Path, default=Path("ablations"), help="folder for the results"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--steps", type=int, default=BUDGET.n_steps)
    options = parser.parse_args(arguments)
    learned = vocabulary()
    results = ablate(
        options.out,
        Design(len(learned["tokenizer.ggml.tokens"])),
        Tokenizer(Vocabulary.from_metadata(learned)),
        replace(BUDGET, n_steps=options.steps),
        range(options.seed, options.seed + options.seeds),
    )
    with replacing(options.out / "ablations.json") as part:
        part.write_text(as_text(results), encoding="utf-8", newline="\n")
    for name in results["experiments"]:
        print("\n" + ablation_report.table(results, name))


def as_text(results):
    """The results as JSON with one line for each run."""
    head = json.dumps({k: v for k, v in results.items() if k != "runs"}, indent=1)
    lines = (f"  {json.dumps(k)}: {json.dumps(run)}" for k, run in results["runs"].items())
    return head[:-2] + ',\n "runs": {\n' + ",\n".join(lines) + "\n }\n}\n"


if __name__ == "__main__":
    main()
