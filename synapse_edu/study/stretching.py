"""Longer rows than those of training: what other schedules of RoPE's angles do for them.

A model that was trained on rows of 128 positions meets 512.  Three schedules are tried on it,
without training it further: the angles as they were; positions divided by four, so that no angle
is new (linear interpolation; Chen et al., 2023); and a larger base, which slows the slow pairs by
four and leaves the fast ones (the "NTK-aware" schedule).
"""

import numpy as np

from .ablation_run import BLOCK, trained
from .variants import token_losses

F32 = np.float32


def tables(design, n_pos, divide=1.0, stretch=1.0):
    """cos and sin of each position and pair, float32 (T, hd/2).

    Parameters
    ----------
    design : Design
    n_pos : int
    divide : float
        Positions are divided by it.
    stretch : float
        The slowest pair turns that many times slower; the fastest as before.
    """
    hd = design.head_dim
    base = design.rope.freq_base * stretch ** (hd / (hd - 2))
    theta = base ** (-2.0 * np.arange(hd // 2) / hd)  # (hd/2,)
    angle = np.arange(n_pos)[:, None] / divide * theta  # (T, hd/2)
    return np.cos(angle).astype(F32), np.sin(angle).astype(F32)


def schedules(design, n_pos, factor):
    """The tables of each schedule, by name."""
    return {
        "as trained": tables(design, n_pos),
        "positions divided": tables(design, n_pos, divide=factor),
        "larger base": tables(design, n_pos, stretch=factor),
    }


def stretch(design, recipe, tokenizer, text):
    """Train a design, and judge it on long rows by each schedule.

    Returns
    -------
    dict
        ``loss_by_position``: by schedule, the mean loss of each 32 positions.
    """
    state, _ = trained(design, recipe, tokenizer)
    n_pos = text.long[0].shape[1]
    found = {}
    for name, turned in schedules(design, n_pos, n_pos / recipe.n_pos).items():
        losses = token_losses(state.p, design, *text.long, tables=turned)  # (B, T)
        found[name] = losses.mean(0).reshape(-1, BLOCK).mean(1).tolist()
    return {"loss_by_position": found}
