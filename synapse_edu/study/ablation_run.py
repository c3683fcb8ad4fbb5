"""One run of an ablation: a design trained by a recipe, and measured on text it has not seen."""

import os
import platform
import random
from dataclasses import dataclass

import numpy as np

from . import machine, storyworld, variants
from .curriculum import encode_story
from .training import State, train

LONG, BLOCK = 512, 32  # positions of a row that is longer than those of training, and of a part


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


def one_text(p, design, tokens, targets, weights, starts):
    """Each row as one text, whose stories see the ones before: so rows can be of any length."""
    return variants.loss_and_gradients(p, design, tokens, targets, weights)


def trained(design, recipe, tokenizer):
    """Train one design from its beginning.

    Returns
    -------
    state : State
    broke_at : int or None
        The step by which a parameter was no longer finite, at which training ends.
    """
    state = State.begin(recipe, variants.initial(design, recipe.seed))
    while state.step < recipe.n_steps:
        until = min(state.step + 25, recipe.n_steps)
        train(recipe, design, tokenizer, state, until, quiet=True, gradients=one_text)
        if not all(np.isfinite(x).all() for x in state.p.values()):
            return state, state.step
    return state, None


def run(design, recipe, tokenizer, text):
    """Train one design and measure it.

    Returns
    -------
    dict
        ``n_params``; ``loss``, ``loss_new_pairs`` in nats a token, None if
        the run broke down; ``loss_by_position``, the mean of each 32 positions of long rows;
        ``broke_at``, the step by which a parameter was no longer finite, or None;
        ``activations`` and ``gradients`` by layer, before training and after; ``curve``;
        ``seconds``.
    """
    probe = [rows[:8] for rows in text.new]
    with np.errstate(all="ignore"):  # some designs overflow: that is their result
        before = variants.norms_by_layer(variants.initial(design, recipe.seed), design, *probe)
        state, broke_at = trained(design, recipe, tokenizer)
        p = state.p
        after = variants.norms_by_layer(p, design, *probe)
        new, pairs, long = (
            variants.token_losses(p, design, *rows)
            for rows in (text.new, text.new_pairs, text.long)
        )
    found = {
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


def here():
    """What the numbers are computed on."""
    return machine.describe() | {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
    }
