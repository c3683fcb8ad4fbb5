"""Quick checks of chapter 03."""

import numpy as np

from ...config import Config
from ...model.params import ModelArgs
from ...study.ablation_report import interval
from ...study.cost import Cost
from ..tasks import Task, register

DIFFERENCES = (0.04, 0.06, 0.11)
LLAMA_70B, LLAMA_1B = Config.named("llama-3-70b"), Config.named("llama-3.2-1b")
GIB = 2**30


def _spread(ddof=1):
    return float(np.std(DIFFERENCES, ddof=ddof))


def _gib(config):
    return Cost.of(config).cache_bytes(8192) / GIB


register(
    Task(
        "03.half",
        right=lambda: interval(DIFFERENCES)[1],
        rtol=2e-2,
        hints=(
            "First the standard deviation of the three, with n − 1 = 2 below the fraction line.",
            "Multiply it by 4.303 and divide by the square root of 3.",
            "np.std([0.04, 0.06, 0.11], ddof=1) is about 0.036.",
        ),
        mistakes=lambda: [
            (_spread(), "this is the standard deviation; the factor 4.303/√3 is missing"),
            (4.303 * _spread(), "divide by √3: a mean of three varies less than one value"),
            (4.303 * _spread(0) / np.sqrt(3), "with three values, divide by n − 1, not by n"),
            (1.96 * _spread() / np.sqrt(3), "1.96 is for many values; for three it is 4.303"),
        ],
    )
)
register(
    Task(
        "03.cache",
        right=lambda: _gib(LLAMA_70B),
        hints=(
            "Bytes of one position: keys and values, all layers, all key/value heads, 2 bytes.",
            "2 · 80 · 8 · 128 · 2 bytes a position, times 8 192 positions.",
            "Divide by 2³⁰; the answer has one digit after the point.",
        ),
        mistakes=lambda: [
            (_gib(LLAMA_70B) / 2, "there are keys and values, or: float16 takes two bytes"),
            (8 * _gib(LLAMA_70B), "64 query heads share 8 key/value heads; only those are kept"),
            (_gib(LLAMA_70B) * GIB / 1e9, "these are gigabytes of 10⁹ bytes"),
        ],
    )
)
register(
    Task(
        "03.width",
        right=lambda: ModelArgs(dim=LLAMA_1B.n_embd).ffn_dim,
        hints=(
            "8 · 2048 / 3 = 5 461.33; cut off the fraction.",
            "5 461 / 256 is a little more than 21.",
            "22 blocks of 256.",
        ),
        mistakes=lambda: [
            (5461, "round up to a multiple of 256"),
            (21 * 256, "round up, not down"),
            (LLAMA_1B.n_ff, "this is the width it has, 4·d; the rule gives less"),
        ],
    )
)
