"""Exercises of chapter 05: bytes, multiply-accumulates, the roofline, and where they cross."""

import math

from ...config import Config
from ...formats.layout import FORMATS
from ...study.cost import Cost
from ..tasks import Task, register
from .draws import pick


def attention_macs(n_layer, n_head, n_head_kv, head_dim, p):
    config = Config("llama", n_layer, 64, n_head, n_head_kv, head_dim, 64, 16, 2**30)
    return Cost.of(config).attention_macs(p)


def _heads(rng):
    kv = pick(rng, 2, 4, 8)
    return int(rng.integers(8, 60)), kv * pick(rng, 2, 3, 5), kv, pick(rng, 64, 96, 128)


register(
    Task(
        "ex05.attention_macs",
        right=attention_macs,
        hints=(
            "Which heads meet the keys, the query heads or the key/value heads?",
            "The token at position p sees p + 1 positions, its own among them. And after the "
            "scores come the values: the same number again.",
            "2 · n_layer · n_head · head_dim · (p + 1): 65 536 · (p + 1) for Llama-3.2-1B.",
        ),
        inputs=lambda rng: [
            (16, 32, 8, 64, 93),
            (32, 32, 32, 128, 0),
            (*_heads(rng), int(rng.integers(1, 5000))),
            (*_heads(rng), int(rng.integers(1, 5000))),
        ],
        mistakes=lambda: [
            (
                lambda n, h, kv, d, p: 2 * n * kv * d * (p + 1),
                "every query head does its own work; sharing saves bytes, not arithmetic",
            ),
            (
                lambda n, h, kv, d, p: 2 * n * h * d * p,
                "off by one: the token at position p sees p + 1 positions",
            ),
            (
                lambda n, h, kv, d, p: n * h * d * (p + 1),
                "scores and values both take multiply-accumulates",
            ),
            (
                lambda n, h, kv, d, p: 2 * h * d * (p + 1),
                "this is one layer",
            ),
            (
                lambda n, h, kv, d, p: 2 * n * kv * d * p,
                "the wrong heads, and off by one",
            ),
        ],
    )
)


def seconds(macs, nbytes, bandwidth, rate):
    return max(macs / rate, nbytes / bandwidth)


register(
    Task(
        "ex05.roofline",
        right=seconds,
        hints=(
            "How long would the arithmetic take alone? How long the reading alone?",
            "Both go on at the same time. The longer one decides.",
            "max(macs / rate, nbytes / bandwidth)",
        ),
        inputs=lambda rng: [
            (1.236e9, 8.0e8, 40e9, 400e9),
            (8e10, 8.0e8, 40e9, 400e9),
            tuple(float(10.0 ** rng.uniform(low, low + 3)) for low in (8, 8, 10, 10)),
            tuple(float(10.0 ** rng.uniform(low, low + 3)) for low in (10, 8, 10, 10)),
            (0.0, 1e9, 1e10, 1e11),
        ],
        mistakes=lambda: [
            (lambda m, b, w, r: m / r + b / w, "both go on at the same time: not the sum"),
            (lambda m, b, w, r: min(m / r, b / w), "the slower of the two decides"),
            (lambda m, b, w, r: b / w, "the arithmetic is forgotten"),
            (lambda m, b, w, r: m / r, "the reading is forgotten"),
        ],
        rtol=1e-6,
    )
)

register(
    Task(
        "ex05.batch",
        right=lambda gmacs, gbs, bits: math.ceil(gmacs / gbs * bits / 8),
        question=(
            "A machine does {gmacs} G multiply-accumulates a second and reads {gbs} GB a second. A "
            "weight takes {bits} bits. From how many requests decoded together does arithmetic, "
            "not memory, set the pace? (The matrix products alone; a whole number.)"
        ),
        given={"gmacs": 800, "gbs": 38, "bits": 4.5},
        draw=lambda rng: {
            "gmacs": 50 * int(rng.integers(11, 60)) + 7,
            "gbs": pick(rng, 23, 41, 67, 97),
            "bits": pick(rng, 4.5, 5.5, 8.5),
        },
        hints=(
            "One request does one multiply-accumulate for each weight that is read. n requests do "
            "n.",
            "Per byte that is n · 8 / {bits}. The machine can do {gmacs} / {gbs} a byte.",
            "The smallest whole n with n · 8 / {bits} ≥ {gmacs} / {gbs}.",
        ),
        mistakes=lambda gmacs, gbs, bits: [
            (math.ceil(gmacs / gbs), "that is for a weight of one byte"),
            (math.ceil(gmacs / gbs * 8 / bits), "bits and bytes are upside down"),
            (math.floor(gmacs / gbs * bits / 8), "with that number memory still sets the pace"),
        ],
    )
)

QUANTS = ("F16", "Q8_0", "Q6_K", "Q5_K", "Q4_K")


def _faster(a, b):
    return FORMATS[a].bits_per_weight / FORMATS[b].bits_per_weight


register(
    Task(
        "ex05.faster",
        right=_faster,
        rtol=0.005,
        question=(
            "A model is decoded one token at a time, and memory sets the pace. Its weights go from "
            "{a} to {b}. How many times as fast does it become, if nothing else counts?"
        ),
        given={"a": "F16", "b": "Q4_K"},
        draw=lambda rng: dict(
            zip(
                ("a", "b"),
                (QUANTS[i] for i in sorted(rng.choice(5, 2, replace=False))),
                strict=True,
            )
        ),
        hints=(
            "Half the bytes, half the time.",
            "How many bits has a weight in each format, scales included? FORMATS[{a!r}] knows.",
            "bits of {a} / bits of {b}",
        ),
        mistakes=lambda a, b: [
            (1 / _faster(a, b), "upside down"),
            (
                (16 if a == "F16" else int(a[1])) / int(b[1]),
                "the scales of each block take bits too",
            ),
            (1.0, "fewer bytes a weight are fewer bytes a token"),
        ],
    )
)


def _crossing(name, bits):
    c = Config.named(name)
    return math.ceil(c.n_params * bits / 8 / Cost.of(c).cache_bytes(1))


register(
    Task(
        "ex05.crossing",
        right=_crossing,
        question=(
            "{name} is stored with {bits} bits a weight, its cache in 16 bits. From how many "
            "cached tokens on is the cache at least as large as the weights?"
        ),
        given={"name": "llama-3.2-1b", "bits": 4.5},
        draw=lambda rng: {
            "name": pick(rng, "smollm2-135m", "llama-3.2-3b", "llama-3.1-8b", "qwen2.5-7b"),
            "bits": pick(rng, 4.5, 5.5, 6.5625),
        },
        hints=(
            "Two sizes: all weights, and the cache of one token.",
            "c = Config.named({name!r}): c.n_params · {bits} / 8 bytes of weights, and 2 · layers "
            "· key/value heads · width · 2 bytes a token.",
            "Divide the first by the second, and round up.",
        ),
        mistakes=lambda name, bits: [
            (_crossing(name, bits) - 1, "with one token fewer the weights are still larger"),
            (_crossing(name, 8 * bits), "the weights are counted in bits, not bytes"),
            (_crossing(name, 16), "that is with 16-bit weights"),
            (
                math.ceil(
                    Config.named(name).n_params
                    * bits
                    / 8
                    / Cost.of(Config.named(name)).cache_bytes(1, materialised=True)
                ),
                "query heads were counted; only key/value heads are stored",
            ),
        ],
    )
)
