"""Exercises of chapter 10: counting, the cache, the hand-made model, draws and norms by hand."""

import numpy as np

from ...model import handmade
from ...study.cost import dense_weights
from ..tasks import Task, register
from .draws import normal, pick

register(
    Task(
        "ex10.count",
        right=lambda layers, d, f, vocabulary: dense_weights(layers, d, f, vocabulary),
        question=(
            "Count the weights of a model with {layers} layers, d = {d}, f = {f} (a feed-forward "
            "layer of two matrices), a vocabulary of {vocabulary}, and an output matrix of its own."
        ),
        given={"layers": 24, "d": 1024, "f": 4096, "vocabulary": 50_000},
        draw=lambda rng: {
            "layers": int(rng.integers(8, 41)),
            "d": (d := pick(rng, 512, 768, 1024, 1536, 2048)),
            "f": d * pick(rng, 3, 4, 5),
            "vocabulary": int(rng.integers(20, 130)) * 1000,
        },
        hints=(
            "Count one layer first: q, k, v and output in attention, two matrices behind it.",
            "A layer has 4·d² + 2·d·f. Outside of the layers there are two tables of V·d.",
            "{layers} · (4 · {d}² + 2 · {d} · {f}) + 2 · {vocabulary} · {d}",
        ),
        mistakes=lambda layers, d, f, vocabulary: [
            (dense_weights(layers, d, f, vocabulary) - vocabulary * d, "there are two tables"),
            (dense_weights(layers, d, f, vocabulary, gated=True), "the layer has two matrices"),
            (dense_weights(layers, d, f, 0), "the tables of the vocabulary are missing"),
            (dense_weights(1, d, f, vocabulary), "this has one layer"),
            (
                layers * (3 * d * d + 2 * d * f) + 2 * vocabulary * d,
                "the output matrix of attention is missing",
            ),
        ],
    )
)


def _request_bytes(layers, kv_heads, width, tokens, **_):
    return 2 * layers * kv_heads * width * tokens


def _requests(gib, **numbers):
    return gib * 2**30 // _request_bytes(**numbers)


def _draw_requests(rng):
    while True:
        numbers = {
            "layers": int(rng.integers(20, 61)),
            "kv_heads": pick(rng, 4, 8, 10),
            "width": pick(rng, 64, 96, 128),
            "tokens": pick(rng, 2048, 4096, 8192, 16384),
            "gib": pick(rng, 8, 12, 16, 24, 40, 48),
        }
        n, rest = divmod(numbers["gib"] * 2**30, _request_bytes(**numbers))
        if 10 < n < 400 and 0.2 < rest / _request_bytes(**numbers) < 0.8:
            return numbers


def _requests_wrong(gib, **numbers):
    one = _request_bytes(**numbers)
    return [
        (gib * 2**30 // (2 * one), "int8 takes one byte a number, not two"),
        (gib * 2**30 // (one // 2), "K or V is missing"),
        (gib * 2**30 // one + 1, "only whole requests fit"),
        (gib * 2**30 / one, "only whole requests count"),
        (gib * 10**9 // one, "a GiB is 2³⁰ bytes, not 10⁹"),
    ]


register(
    Task(
        "ex10.requests",
        right=_requests,
        question=(
            "A model has {layers} layers and {kv_heads} key/value heads of width {width}, stored "
            "in int8. How many requests of {tokens} tokens fit into {gib} GiB?"
        ),
        given={"layers": 40, "kv_heads": 8, "width": 128, "tokens": 8192, "gib": 24},
        draw=_draw_requests,
        hints=(
            "First the bytes of one token, then of one request.",
            "One token: 2 · {layers} · {kv_heads} · {width} · 1 bytes. A GiB is 2³⁰ bytes.",
            "{gib} · 2³⁰ // (2 · {layers} · {kv_heads} · {width} · {tokens})",
        ),
        mistakes=_requests_wrong,
    )
)

register(
    Task(
        "ex10.intensity",
        right=lambda prompt, bits: [prompt * 8 / bits, 8 / bits],
        question=(
            "A weight takes {bits} bits. How many multiply-accumulates are done for each byte of "
            "weights that is read: in a prefill of {prompt} tokens at once, and in decoding one "
            "token? Answer with a list of two numbers."
        ),
        given={"prompt": 512, "bits": 8},
        draw=lambda rng: {"prompt": int(rng.integers(3, 64)) * 16, "bits": pick(rng, 2, 4, 16)},
        hints=(
            "For one token, each weight is used once.",
            "A prefill of n tokens uses each weight n times, and reads it once.",
            "A byte holds 8 / {bits} weights.",
        ),
        mistakes=lambda prompt, bits: [
            ([prompt * bits / 8, bits / 8], "that is bytes a weight; asked is weights a byte")
            if bits != 8
            else ([1 / prompt, 1], "upside down: each weight serves all tokens of the prompt"),
            ([8 / bits, 8 / bits], "in a prefill each weight serves all tokens of the prompt"),
            ([8 / bits, prompt * 8 / bits], "prefill comes first"),
        ],
    )
)

register(
    Task(
        "ex10.depth",
        right=lambda factor: factor**100,
        rtol=0.02,
        question=(
            "Leave out the residual connections, and let each layer give a vector {factor} times "
            "as long as the one it gets. How many times as long is it after 100 layers?"
        ),
        given={"factor": 0.8},
        draw=lambda rng: {"factor": pick(rng, 0.7, 0.75, 0.85, 0.9, 1.05, 1.1, 1.2, 1.3)},
        hints=(
            "Two layers: the factor is applied twice.",
            "A product of 100 equal factors is a power.",
            "{factor}**100",
        ),
        mistakes=lambda factor: [
            (factor * 100, "factors multiply, they do not add up"),
            (1 + (factor - 1) * 100, "factors multiply, they do not add up"),
            (factor**99, "there are 100 layers, so 100 factors"),
            (1 / factor**100, "upside down"),
        ],
    )
)

register(
    Task(
        "ex10.rule",
        right=lambda start: handmade.generate(start, 6)[1:],
        question=(
            "The hand-made model is given the token {start}. Which six tokens follow? Answer with "
            "a list, without the {start} itself."
        ),
        given={"start": 1},
        draw=lambda rng: {"start": int(rng.integers(2, 16))},
        hints=(
            "It was built to follow a rule: t is followed by (5t + 3) mod 16.",
            "Apply the rule to its own answer, six times.",
            "The first is (5 · {start} + 3) % 16.",
        ),
        mistakes=lambda start: [
            (handmade.generate(start, 5), "the start itself is not asked for"),
            (_steps(start, lambda t: 5 * t + 3), "mod 16 is missing"),
            (_steps(start, lambda t: (3 * t + 5) % 16), "it is 5t + 3, not 3t + 5"),
            (_steps(start, lambda t: (5 * (t + 3)) % 16), "first times 5, then plus 3"),
        ],
    )
)


def _steps(t, rule):
    out = []
    for _ in range(6):
        t = rule(t)
        out.append(t)
    return out


def feed_forward(x, W1, W2):
    return x + np.maximum(x @ W1, 0) @ W2


def _ffn_inputs(rng):
    w = handmade.weights()
    x = np.zeros(16)
    x[5] = 1.5
    return [
        (normal(rng, 3, 4), normal(rng, 4, 8), normal(rng, 8, 4)),
        (normal(rng, 6), normal(rng, 6, 6), normal(rng, 6, 6)),
        (x, w["W1"], w["W2"]),
        (np.zeros((1, 4), np.float32), normal(rng, 4, 8), normal(rng, 8, 4)),
    ]


register(
    Task(
        "ex10.feed_forward",
        right=feed_forward,
        hints=(
            "For one token of the hand-made model, look which units are on. Exactly two should be.",
            "A negative sum must become 0, and the stream must not be lost.",
            "x + np.maximum(x @ W1, 0) @ W2",
        ),
        inputs=_ffn_inputs,
        mistakes=lambda: [
            (lambda x, a, b: np.abs(x @ a) @ b, "the absolute value is no ReLU, and x is missing"),
            (lambda x, a, b: x + np.abs(x @ a) @ b, "the absolute value is no ReLU"),
            (lambda x, a, b: np.maximum(x @ a, 0) @ b, "the residual is missing"),
            (lambda x, a, b: x + x @ a @ b, "ReLU is missing"),
        ],
        rtol=1e-4,
        atol=1e-5,
    )
)
