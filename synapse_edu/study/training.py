"""Train the built-in model on the story world: ``python -m synapse_edu.study.training``.

The recipe has five parts.  A start at which the heads of the first layer look a few tokens back
(`story_model.look_back`).  A curriculum: the first steps hold random sequences that repeat, so
that heads learn to look back and copy; then drills, which ask for one fact out of four; then
stories.  AdamW with a warm-up and a cosine schedule.  Extra weight on the words that the rules
determine, because most words of a story are free and teach nothing.  Gradients clipped to a norm
of 1.

Everything follows from the seed: the batch of step s is drawn from (seed, s) alone, so a run that
is interrupted and resumed ends with the same bits as one that is not, on the same machine with
the same number of BLAS threads.  The command takes one thread unless ``OPENBLAS_NUM_THREADS``
says otherwise.
"""

import os

if __name__ == "__main__":  # before NumPy is imported: the bits depend on it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..atomic import replacing
from ..errors import BadArgument, FileProblem
from ..model.load import load
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary
from . import storyworld
from .backward import loss_and_gradients
from .curriculum import batch
from .export import export
from .optimiser import adamw, clip
from .recipe import Recipe
from .scores import rule_scores, scores, scores_without
from .story_model import initial, story_config, vocabulary


@dataclass
class State:
    """A run between two steps.

    Attributes
    ----------
    recipe : Recipe
    step : int
        Steps done.
    p, m, v : dict of str → ndarray of float32
        Parameters, and AdamW's two averages of their gradients.
    curve : list of [step, loss, gradient norm]
    seconds : float
        Time spent so far.
    """

    recipe: Recipe
    step: int
    p: dict
    m: dict
    v: dict
    curve: list
    seconds: float = 0.0

    @classmethod
    def new(cls, recipe, config):
        return cls.begin(recipe, initial(config, recipe.seed))

    @classmethod
    def begin(cls, recipe, p):
        """A run that starts with the parameters `p`."""
        zeros = {name: np.zeros_like(x) for name, x in p.items()}
        return cls(recipe, 0, p, zeros, {name: x.copy() for name, x in zeros.items()}, [])

    def save(self, path):
        """Write to `path`; an interruption keeps the older one."""
        arrays = {f"{kind}/{n}": x for kind in "pmv" for n, x in getattr(self, kind).items()}
        rest = {"recipe": asdict(self.recipe), "curve": self.curve, "seconds": self.seconds}
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, step=self.step, rest=json.dumps(rest), **arrays)

    @classmethod
    def load(cls, path):
        """Read a checkpoint; FileProblem if the file is none."""
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {"p": {}, "m": {}, "v": {}}
                for key in file.files:
                    if "/" in key:
                        kind, name = key.split("/", 1)
                        parts[kind][name] = file[key]
                rest = json.loads(str(file["rest"]))
                recipe = Recipe(**rest.pop("recipe"))
                return cls(recipe, int(file["step"]), **parts, **rest)
        except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise FileProblem(f"{path}: this is not a training checkpoint ({error}).") from None

    def check(self, recipe):
        """Refuse to go on by another recipe than the run began with."""
        mine, theirs = asdict(self.recipe), asdict(recipe)
        other = [f"{k}: {mine[k]}, not {theirs[k]}" for k in mine if mine[k] != theirs[k]]
        if other:
            raise BadArgument(
                f"The checkpoint was made by another recipe ({'; '.join(other)}). Give the same "
                "one, or begin in another folder."
            )


def train(
    recipe,
    config,
    tokenizer,
    state=None,
    until=None,
    save=None,
    save_every=250,
    quiet=False,
    gradients=loss_and_gradients,
):
    """Run the recipe from `state` (or the beginning) to step `until` (or the end).

    Parameters
    ----------
    recipe : Recipe
    config : Config
    tokenizer : Tokenizer
    state : State, optional
        Changed in place.
    until : int, optional
    save : path, optional
        Where to write a checkpoint every `save_every` steps, a multiple of 25, and at the end.
    quiet : bool
        No progress bar.
    gradients : function
        (parameters, config, tokens, targets, weights, starts) → (loss, gradients by name).

    Returns
    -------
    State
        Its ``curve`` has one entry every 25 steps.
    """
    from tqdm.auto import tqdm

    if recipe.n_pos > config.n_ctx_train:
        raise BadArgument(f"A row of {recipe.n_pos} positions is longer than the model's context.")
    state = state or State.new(recipe, config)
    state.check(recipe)
    until = recipe.n_steps if until is None else until
    recent, before = [], time.perf_counter() - state.seconds
    with tqdm(total=until, initial=state.step, unit="step", disable=quiet) as bar:
        while state.step < until:
            loss, norm = one_step(state, config, tokenizer, gradients)
            recent.append(loss)
            state.seconds = time.perf_counter() - before
            bar.update()
            if state.step % 25 == 0:
                state.curve.append([state.step, float(np.mean(recent)), norm])
                bar.set_postfix(loss=f"{np.mean(recent):.3f}")
                recent = []
            if save and state.step % save_every == 0:
                state.save(save)
    if save:
        state.save(save)
    return state


def one_step(state, config, tokenizer, gradients=loss_and_gradients):
    """Draw a batch, differentiate, and move the parameters; returns the loss and the norm."""
    recipe = state.recipe
    drawn = batch(tokenizer, config, recipe, state.step)
    loss, grads = gradients(state.p, config, *drawn)
    norm = clip(grads, recipe.clip)
    adamw(state.p, grads, state.m, state.v, state.step, recipe)
    state.step += 1
    return loss, norm


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train the built-in model on the story world.")
    parser.add_argument("--out", type=Path, default=Path("training"), help="folder for the results")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--steps", type=int, default=Recipe.n_steps)
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    parser.add_argument("--stories", type=int, default=500, help="for each of the two scores")
    options = parser.parse_args(arguments)
    recipe = Recipe(n_steps=options.steps, seed=options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    learned = vocabulary()
    tokenizer = Tokenizer(Vocabulary.from_metadata(learned))
    config = story_config(len(learned["tokenizer.ggml.tokens"]))
    saved = options.out / "checkpoint.npz"
    state = State.load(saved) if options.resume and saved.exists() else None
    state = train(recipe, config, tokenizer, state, save=saved)
    export(options.out / "built-in.gguf", config, state.p, learned)
    report = measure(state, config, tokenizer, load(options.out / "built-in.gguf"), options.stories)
    (options.out / "training.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps({k: v for k, v in report.items() if k != "curve"}, indent=1))


def measure(state, config, tokenizer, model, n):
    """All that is to be told about a run: what it cost, and what came of it.

    ``held_out`` and ``trained_pairs`` are the scores of the parameters; ``held_out_in_the_file``
    those of the exported model on the same stories; ``without_head`` its scores on a tenth as
    many with each head silenced.
    """
    kept = storyworld.stories(n, 10_000, held_out=True)
    silenced = scores_without(model, kept[: max(1, n // 10)])
    return {
        "recipe": asdict(state.recipe),
        "n_params": int(sum(x.size for x in state.p.values())),
        "minutes": state.seconds / 60,
        "held_out": scores(state.p, config, tokenizer, kept),
        "trained_pairs": scores(state.p, config, tokenizer, storyworld.stories(n, 10_000)),
        "held_out_in_the_file": rule_scores(model, kept),
        "without_head": {kind: table.tolist() for kind, table in silenced.items()},
        "curve": state.curve,
    }


if __name__ == "__main__":
    main()
