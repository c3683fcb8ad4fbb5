"""Quick checks of chapter 11."""

import numpy as np

from ...config import Config
from ...study.cost import Cost
from ...study.preference import delta, dpo
from ..tasks import Task, register

GIB = 2**30


def _cache(n_head_kv=8, n=4):
    config = Config.named("llama-3.1-70b").replace(n_head_kv=n_head_kv)
    return Cost.of(config).cache_bytes(32_768, n) / GIB


def _total(factor=True):
    """How many times less memory 8 key/value heads need than 32: weights and one long cache."""
    grouped = Cost.of(Config.named("llama-3.1-8b"), "BF16")
    small = grouped.nbytes + grouped.cache_bytes(8192)
    large = grouped.nbytes + 4 * grouped.cache_bytes(8192)
    return large / small if factor else small / large


def _dpo(beta=0.5, sign=1):
    change = delta(np.log(0.1), np.log(0.05), np.log(0.2), np.log(0.2))
    return float(dpo(sign * change, beta)[0])


register(
    Task(
        "11.cache",
        right=_cache,
        hints=(
            "2 · requests · layers · tokens · key/value heads · width of a head · bytes.",
            "2 · 4 · 80 · 32 768 · 8 · 128 · 2 bytes.",
            "Divide by 2³⁰.",
        ),
        mistakes=lambda: [
            (_cache() / 2, "keys and values are both stored"),
            (_cache(64), "the cache holds the 8 key/value heads, not the 64 query heads"),
            (_cache(n=1), "there are four requests"),
            (_cache() * GIB / 1e9, "that is in units of 10⁹ bytes; a GiB has 2³⁰"),
        ],
    )
)
register(
    Task(
        "11.dpo",
        right=_dpo,
        rtol=1e-3,
        hints=(
            "The preferred answer's ratio to the reference is 0.1 / 0.2, the other's 0.05 / 0.2.",
            "Δ is the logarithm of 0.5 / 0.25, so ln 2.",
            "−ln σ(0.5 · ln 2) = ln(1 + 1/√2).",
        ),
        mistakes=lambda: [
            (_dpo(1.0), "β is 0.5 here"),
            (_dpo(sign=-1), "Δ has the other sign: preferred minus other"),
            (float(np.log(2)), "that is the loss before any change, where Δ = 0"),
        ],
    )
)
register(
    Task(
        "11.novelty",
        right=lambda: "c",
        hints=(
            "Look at the two arms with long and short documents.",
            "What was the same in both, and what was not?",
            "The block was the same.",
        ),
        mistakes=lambda: [
            ("a", "the block was the same in all arms, and the scores were not"),
            ("b", "a new block can help too; it is one cause among several"),
        ],
    )
)
register(
    Task(
        "11.speedup",
        right=_total,
        rtol=1e-2,
        hints=(
            "The cache is 1 GiB with 8 heads and 4 GiB with 32; the weights stand in the table.",
            "(weights + 4 GiB) / (weights + 1 GiB).",
            "The weights are close to 15 GiB.",
        ),
        mistakes=lambda: [
            (4.0, "that is the cache alone; the weights stay"),
            (_total(False), "this is the small one over the large one"),
        ],
    )
)
register(
    Task(
        "11.factors",
        right=lambda: 4,
        hints=(
            "Each factor is either as it was or new.",
            "One run for comparison, and one for each factor changed alone.",
            "1 + 3.",
        ),
        mistakes=lambda: [
            (2, "old against new tells what all three do together, not which one did it"),
            (3, "the old system is needed too, to compare with"),
            (8, "that also measures how factors act together; fewer runs tell each one alone"),
        ],
    )
)
register(
    Task(
        "11.dense",
        right=lambda: "b",
        hints=(
            "What else changes with a mixture of experts?",
            "In which of the three is the structure itself not the question?",
            "Where only the data differ, everything else should be plain and known.",
        ),
        mistakes=lambda: [
            ("a", "here the router is the question, so a model without one cannot answer it"),
            ("c", "what is fastest in use is found by measuring the candidates themselves"),
        ],
    )
)
