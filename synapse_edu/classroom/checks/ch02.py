"""Quick checks of chapter 02."""

import numpy as np

from ...config import Config
from ...model.sampling import Sampler
from ..tasks import Task, register

LLAMA, SMOL = Config.named("llama-3.2-1b"), Config.named("smollm2-135m")
SHARES = (0.5, 0.3, 0.15, 0.05)

register(
    Task(
        "02.scale",
        right=lambda: 1 / np.sqrt(LLAMA.head_dim),
        hints=(
            "Take the square root of the width of a head, then one over it.",
            "The square root of 64 is a whole number.",
            "One eighth.",
        ),
        mistakes=lambda: [
            (1 / LLAMA.head_dim, "you divided by d instead of √d"),
            (np.sqrt(LLAMA.head_dim), "this is √d; the factor is one over it"),
        ],
    )
)
register(
    Task(
        "02.kv_head",
        right=lambda: 7 // SMOL.n_group,
        hints=(
            "The first n_group query heads read key/value head 0, the next n_group read 1, …",
            "n_group is 9 / 3.",
            "7 // 3, counted from 0.",
        ),
        mistakes=lambda: [
            (7 % SMOL.n_head_kv, "you dealt the heads out like cards (h mod n_head_kv)"),
            (7 // SMOL.n_group + 1, "heads are counted from 0"),
        ],
    )
)
register(
    Task(
        "02.top_p",
        right=lambda: len(Sampler(top_p=0.9).distribution(np.log(np.array(SHARES)))[0]),
        hints=(
            "Add the shares from the largest down, and stop as soon as the sum reaches 0.9.",
            "0.5 + 0.3 is 0.8: not yet.",
            "0.5 + 0.3 + 0.15 is 0.95: enough.",
        ),
        mistakes=lambda: [
            (2, "0.5 + 0.3 = 0.8 has not reached 0.9 yet"),
            (4, "the sum passes 0.9 before the last one"),
            (1, "one token alone has only half of the probability"),
        ],
    )
)
