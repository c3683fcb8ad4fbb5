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
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from ..atomic import replacing
from ..errors import BadArgument, FileProblem
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary
from . import ablation_report, stretching
from .ablation_grid import BUDGET, experiments, keys, runs_of
from .ablation_run import Text, here, run
from .story_model import vocabulary
from .variants import Design


def kept(path, make, design, recipe):
    """A finished run from its file; if there is none, it is made, and written whole or not at all.

    Raises
    ------
    BadArgument
        If the file is of another design or budget.
    FileProblem
        If it is damaged.
    """
    found = stored(path, design, recipe)
    if found is None:
        found = make() | {"design": asdict(design), "recipe": asdict(recipe), "machine": here()}
        with replacing(path) as part:
            part.write_text(json.dumps(found), encoding="utf-8")
    return found


def stored(path, design, recipe):
    """What a file of a finished run holds, or None if there is no file."""
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
        keys of the runs; ``stretched``, by schedule of the angles the losses of long rows, for
        each seed; ``runs`` by key.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    text = text or Text.of(tokenizer, recipe.n_pos)
    wanted, results = runs_of(base, recipe, seeds), {}
    for i, (name, (design, mine)) in enumerate(wanted.items(), 1):
        make = partial(run, design, mine, tokenizer, text)
        results[name] = found = kept(out / f"{name}.json", make, design, mine)
        loss = "broke down" if found["loss"] is None else f"{found['loss']:.3f} nats"
        say(f"{i:3} of {len(wanted)}  {name:52} {loss:10}  {found['seconds']:4.0f} s")
    long_rows = []
    for seed in seeds:
        mine = replace(recipe, seed=seed)
        make = partial(stretching.stretch, base, mine, tokenizer, text)
        found = kept(out / f"stretched_seed-{seed}.json", make, base, mine)
        long_rows.append(found["loss_by_position"])
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
                "arms": keys(e, base, recipe, seeds),
            }
            for e in experiments(base)
        },
        "stretched": {name: [rows[name] for rows in long_rows] for name in long_rows[0]},
        "runs": results,
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
