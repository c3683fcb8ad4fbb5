"""Quick checks of chapter 00."""

import numpy as np

from ..tasks import Task, register


def _softmax(z):
    e = np.exp(np.asarray(z, float))  # (n,)
    return e / e.sum()


register(
    Task(
        "00.equal",
        right=lambda: _softmax([7, 7]),
        hints=(
            "The soft-max divides each of two equal numbers by their sum.",
            "e⁷ / (e⁷ + e⁷): what is left when you cancel e⁷?",
            "Both shares are the same, and they sum to 1. Write them as [share, share].",
        ),
        mistakes=lambda: [
            (np.array([7.0, 7.0]), "these are the numbers themselves, not their shares"),
            (np.array([1.0, 1.0]), "these do not sum to 1"),
        ],
    )
)
