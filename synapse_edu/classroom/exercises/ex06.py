"""Exercises of chapter 06: pairs, factors, temperature, and which rule shows when it is missing."""

import functools

import numpy as np

from ...ops.reference.attention import temperature as engine_temperature
from ..tasks import Task, register
from .draws import normal, pick
from .ex02 import half_split
from .ex02 import rope as neighbours


def permute(W, n_head):
    """Rows of the halves layout → rows of the neighbours layout, head by head."""
    rows, n_in = W.shape
    half = rows // n_head // 2
    return W.reshape(n_head, 2, half, n_in).swapaxes(1, 2).reshape(rows, n_in)


def unpermute(W, n_head):
    rows, n_in = W.shape
    half = rows // n_head // 2
    return W.reshape(n_head, half, 2, n_in).swapaxes(1, 2).reshape(rows, n_in)


register(
    Task(
        "ex06.permute",
        right=permute,
        hints=(
            "Do it for one head of 8 rows first. In which order must rows 0 to 7 stand?",
            "Row 2i of the new head is row i of the old one, and row 2i + 1 is row i + d/2: 0, 4, "
            "1, 5, 2, 6, 3, 7. Each head by itself.",
            "W.reshape(n_head, 2, d // 2, n_in).swapaxes(1, 2).reshape(W.shape)",
        ),
        inputs=lambda rng: [
            (normal(rng, 8, 3), 1),
            (normal(rng, 16, 4), 2),
            (normal(rng, 24, 5), 3),
            (normal(rng, 4, 2), 2),
            (normal(rng, 16, 2), 1),
        ],
        mistakes=lambda: [
            (unpermute, "that is the way back, from neighbours to halves"),
            (lambda W, n: permute(W, 1), "all heads are taken for one"),
            (lambda W, n: W, "nothing is moved"),
            (lambda W, n: permute(permute(W, n), n), "permuted twice"),
        ],
    )
)


register(
    Task(
        "ex06.halves",
        right=half_split,
        hints=(
            "Print the result for (1, 0, 0, 0, 0, 0, 0, 0) at position 1. Which elements are "
            "different from 0, and which should be?",
            "In a Qwen2 file element i is paired with element i + d/2.",
            "a, b = x[:, : d // 2], x[:, d // 2 :], and write the results back to the same places.",
        ),
        inputs=lambda rng: [
            (normal(rng, 2, 8), 5, 1e6),
            (normal(rng, 1, 16), 0, 1e6),
            (normal(rng, 3, 64), int(rng.integers(100, 4000)), 1e6),
            (normal(rng, 2, 4), 1, 10000.0),
        ],
        mistakes=lambda: [
            (neighbours, "neighbours are paired; in a Qwen2 file it is the halves"),
            (lambda x, p, base: half_split(x, -p, base), "it turns the other way"),
            (lambda x, p, base: half_split(x, p + 1, base), "positions are counted from 0"),
            (
                lambda x, p, base: half_split(x, p, base**0.5),
                "the exponent is −2i/d; this is half of it",
            ),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)


def factors(waves, factor, low, high, old_context):
    smooth = (old_context / waves - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    slow = np.where(waves > old_context / low, float(factor), between)
    return np.where(waves < old_context / high, 1.0, slow)


def _waves(rng, n=12):
    return np.exp(np.sort(rng.uniform(np.log(6), np.log(2e6), n)))


register(
    Task(
        "ex06.factors",
        right=factors,
        hints=(
            "Three cases, by the length of the wave: short ones get 1, long ones get `factor`, and "
            "those between something in between.",
            "Short is below old_context / high, long is above old_context / low. Between them, "
            "smooth = (old_context / wave − low) / (high − low) runs from 1 to 0.",
            "1 / ((1 - smooth) / factor + smooth) is what stands between.",
        ),
        inputs=lambda rng: [
            (_waves(rng), 32.0, 1.0, 4.0, 8192),
            (_waves(rng), 8.0, 1.0, 4.0, 8192),
            (np.exp(rng.uniform(np.log(2100), np.log(8100), 8)), 32.0, 1.0, 4.0, 8192),
            (_waves(rng), 4.0, 2.0, 6.0, 4096),
        ],
        mistakes=lambda: [
            (lambda *a: 1 / factors(*a), "upside down: the angle is divided by the factor"),
            (lambda w, f, *a: np.full(len(w), f), "fast pairs keep their angle"),
            (
                lambda w, f, lo, hi, n: np.where(w > n / lo, f, 1.0),
                "between short and long waves there is a smooth passage",
            ),
            (
                lambda w, f, lo, hi, n: _linear(w, f, lo, hi, n),
                "it is 1/factor that is blended, not the factor",
            ),
        ],
        rtol=1e-5,
    )
)


def _linear(waves, factor, low, high, old_context):
    smooth = np.clip((old_context / waves - low) / (high - low), 0, 1)
    return (1 - smooth) * factor + smooth


def temperature(p, scale, n_ctx_orig):
    one = np.ones((len(p), 1, 1), np.float32)
    return engine_temperature(one, p, scale, n_ctx_orig)[:, 0, 0]


register(
    Task(
        "ex06.temperature",
        right=temperature,
        hints=(
            "How many whole contexts lie before position p? np.floor(p / n_ctx_orig).",
            "For every p below n_ctx_orig the result is exactly 1.",
            "1 + scale * np.log(np.floor(p / n_ctx_orig) + 1)",
        ),
        inputs=lambda rng: [
            (np.array([0, 16_383, 16_384, 40_000, 131_071]), 0.1, 16_384),
            (np.sort(rng.integers(0, 200_000, 6)), 0.1, 16_384),
            (rng.integers(0, 5000, 5), 0.25, 1024),
            (np.array([3]), 0.1, 4),
        ],
        mistakes=lambda: [
            (lambda p, s, n: 1 + s * np.log(p / n + 1), "p / N is not rounded down"),
            (lambda p, s, n: 1 + s * np.log10(p // n + 1), "the logarithm is the natural one"),
            (lambda p, s, n: 1 + s * np.log2(p // n + 1), "the logarithm is the natural one (ln)"),
            (
                lambda p, s, n: 1 + s * np.log(np.maximum(p // n, 1)),
                "the + 1 inside the logarithm is missing",
            ),
            (lambda p, s, n: 1 / temperature(p, s, n), "upside down: the query gets longer"),
        ],
        rtol=1e-5,
    )
)

RULES = {
    "pairs": ("the pairs of RoPE (Llama weights, halves)", "llama", {"layout": "neox"}),
    "biases": ("the biases of Q, K and V (Qwen2)", "qwen2", {"biases": False}),
    "factors": ("the frequency factors (Llama 3.1)", "llama", {"factors": False}),
    "temperature": ("the attention temperature (Ministral 3)", "mistral3", {"attn": 0.0}),
    "base": ("the RoPE base (1 000 000 instead of 10 000)", "qwen2", {"freq_base": 1e6}),
}


@functools.lru_cache
def _seen_first(rule):
    """Whether the first token's logits change when a tiny model forgets `rule`."""
    from ...study.tiny import changed, random_model, tiny_config

    _, architecture, change = RULES[rule]
    settings = {"n_ctx_orig": 4, "attn_temperature_scale": 0.1} if rule == "temperature" else {}
    slow = np.linspace(1, 8, 8).astype(np.float32) if rule == "factors" else None
    model = random_model(tiny_config(architecture, **settings), seed=2, factors=slow)
    change = {"attn_temperature_scale": 0.0} if "attn" in change else change
    first = [m.prefill([3], m.new_cache(8)) for m in (model, changed(model, **change))]
    return not np.array_equal(*first)


register(
    Task(
        "ex06.first_token",
        right=lambda a, b, c: [_seen_first(rule) for rule in (a, b, c)],
        question=(
            "Three programs forget one rule each: {a}; {b}; {c}. You test each with a prompt of "
            "one token only. Which of them can you catch? Answer with a list of three times True "
            "or False."
        ),
        given={"a": "pairs", "b": "biases", "c": "factors"},
        draw=lambda rng: dict(
            zip(
                "abc",
                rng.permutation(["biases", *rng.choice(_SILENT, 2, replace=False)]).tolist(),
                strict=True,
            )
        ),
        hints=(
            "At which position does a one-token prompt stand?",
            "At position 0 every angle is 0, whatever the pairs, the base or the factors. And the "
            "temperature is exactly 1 there.",
            "Only what has nothing to do with the position shows. Which of the three is that?",
        ),
        mistakes=lambda a, b, c: [
            ([True, True, True], "at position 0 nothing is rotated"),
            ([False, False, False], "one of the rules has nothing to do with the position"),
        ],
    )
)
_SILENT = ["pairs", "factors", "temperature", "base"]


register(
    Task(
        "ex06.slow_pairs",
        right=lambda base, d, context: int(
            sum(2 * np.pi * base ** (2 * i / d) > context for i in range(d // 2))
        ),
        question=(
            "A head has {d} elements and the RoPE base is {base}. How many of its d/2 pairs do "
            "not complete one turn within {context} positions?"
        ),
        given={"base": 500_000, "d": 64, "context": 8192},
        draw=lambda rng: {
            "base": pick(rng, 10_000, 100_000, 500_000, 1_000_000),
            "d": pick(rng, 80, 96, 128),
            "context": pick(rng, 1024, 2048, 4096),
        },
        hints=(
            "Pair i turns by base^(−2i/d) for each position. After how many positions is that a "
            "full turn?",
            "The wave of pair i is 2π · base^(2i/d) positions long.",
            "Count the i from 0 to {d}/2 − 1 for which 2π · {base}^(2i/{d}) is above {context}.",
        ),
        mistakes=lambda base, d, context: [
            (
                int(sum(base ** (2 * i / d) > context for i in range(d // 2))),
                "a full turn is 2π, not 1",
            ),
            (
                int(sum(2 * np.pi * base ** (2 * i / d) <= context for i in range(d // 2))),
                "these are the pairs that do complete a turn",
            ),
        ],
    )
)
