"""Quick checks of chapter 09."""

import numpy as np

from ...model.batched import causal_mask
from ..tasks import Task, register

register(
    Task(
        "09.mask",
        right=lambda: int(np.isneginf(causal_mask(4, 10)).sum()),
        hints=(
            "The left part, ten columns wide, hides nothing.",
            "Of the new tokens, the first may not see three, the second two, …",
            "3 + 2 + 1 + 0",
        ),
        mistakes=lambda: [
            (10, "the diagonal is visible: a token sees itself"),
            (16, "that is the size of the square part"),
            (56, "that is the size of the whole mask"),
            (46, "the cached tokens are all visible"),
        ],
    )
)
