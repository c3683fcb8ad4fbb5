"""Quick checks of chapter 08."""

from ...formats.layout import FORMATS
from ..tasks import Task, register

register(
    Task(
        "08.step",
        right=lambda: 2.54 / 127,
        rtol=1e-3,
        hints=(
            "The largest number gets the code 127.",
            "So 127 steps reach 2.54.",
            "2.54 / 127",
        ),
        mistakes=lambda: [
            (2.54 / 128, "the codes run to 127, not 128"),
            (2.54 / 255, "127 steps reach the largest number; the negative ones have their own"),
            (2.54 / 256, "127 steps reach the largest number; the negative ones have their own"),
        ],
    )
)
register(
    Task(
        "08.bits",
        right=lambda: FORMATS["Q4_K"].bits_per_weight,
        hints=(
            "A block has 144 bytes for 256 weights.",
            "144 · 8 bits / 256",
            "Four bits for the code, and half a bit for scales and minima.",
        ),
        mistakes=lambda: [
            (4.0, "the scales and minima take bits too"),
            (144 / 256, "that is bytes"),
        ],
    )
)
