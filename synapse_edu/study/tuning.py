"""Going on from trained parameters: a loop of AdamW around any loss."""

import numpy as np

from .optimiser import adamw, clip


def tune(p, gradients, recipe, after=None):
    """Move a copy of some parameters.

    Parameters
    ----------
    p : dict of str → ndarray of float32
        Left as they are.
    gradients : function
        (parameters, step) → (loss, gradients by name).
    recipe : Recipe
        Its steps, rates, decay and clip.
    after : function, optional
        Called with (steps done, parameters) before the first step and after each.

    Returns
    -------
    p : dict of str → ndarray of float32
    losses : list of float
        Of each step, before it.
    """
    p = {name: x.copy() for name, x in p.items()}
    m, v = ({name: np.zeros_like(x) for name, x in p.items()} for _ in "mv")
    losses = []
    for step in range(recipe.n_steps):
        if after:
            after(step, p)
        loss, grads = gradients(p, step)
        clip(grads, recipe.clip)
        adamw(p, grads, m, v, step, recipe)
        losses.append(loss)
    if after:
        after(recipe.n_steps, p)
    return p, losses
