"""Quick checks of chapter 06."""

import numpy as np

from ...ops.reference.attention import temperature
from ..tasks import Task, register


def _factor():
    one = np.ones((1, 1, 1), np.float32)  # (1, 1, 1)
    return float(temperature(one, [32_768], 0.1, 16_384)[0, 0, 0])


register(
    Task(
        "06.pair",
        right=lambda: 5 + 64 // 2,
        hints=(
            "Element i of the first half is paired with the one at the same place of the second.",
            "The second half begins at element 32.",
            "5 + 32",
        ),
        mistakes=lambda: [
            (4, "that is its neighbour: the other layout"),
            (6, "5 is the second element of the pair (4, 5) in the other layout"),
            (58, "counted from the end; the second half runs in the same direction"),
        ],
    )
)
register(
    Task(
        "06.temperature",
        right=_factor,
        rtol=1e-4,
        hints=(
            "32 768 / 16 384 = 2, so the floor is 2.",
            "1 + 0.1 · ln(2 + 1)",
            "ln 3 is about 1.0986.",
        ),
        mistakes=lambda: [
            (1 + 0.1 * np.log(2), "the + 1 inside the logarithm is missing"),
            (1 + 0.1 * np.log10(3), "the logarithm is the natural one"),
            (1.0, "32 768 is beyond the original context"),
        ],
    )
)
