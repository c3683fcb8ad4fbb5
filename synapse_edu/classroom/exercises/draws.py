"""Inputs that many tasks draw."""

import numpy as np


def normal(rng, *shape, scale=1.0):
    """Normally distributed float32 numbers."""
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def pick(rng, *choices):
    """One of the choices, as a plain Python value."""
    return choices[int(rng.integers(len(choices)))]
