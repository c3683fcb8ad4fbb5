"""Exercises of chapter 01: shapes, counts, the header of a file, the cache."""

import struct

import numpy as np

from ...config import Config
from ..tasks import Task, register
from .draws import pick


def shapes(n_embd, n_head, n_head_kv, head_dim, n_ff):
    return np.array(
        [
            (n_head * head_dim, n_embd),  # attn_q
            (n_head_kv * head_dim, n_embd),  # attn_k
            (n_head_kv * head_dim, n_embd),  # attn_v
            (n_embd, n_head * head_dim),  # attn_output
            (n_ff, n_embd),  # ffn_gate
            (n_ff, n_embd),  # ffn_up
            (n_embd, n_ff),  # ffn_down
        ]
    )


def _sizes(rng):
    kv = pick(rng, 2, 4, 8)
    return 64 * int(rng.integers(5, 40)), kv * pick(rng, 2, 3, 4), kv, pick(rng, 64, 80, 96, 128)


register(
    Task(
        "ex01.shapes",
        right=shapes,
        hints=(
            "A table takes a vector with as many numbers as it has columns, and gives one with as "
            "many as it has rows.",
            "Queries fill n_head heads, keys and values only n_head_kv. attn_output takes all "
            "heads side by side and gives a vector of the stream.",
            "(n_head·head_dim, n_embd), twice (n_head_kv·head_dim, n_embd), (n_embd, "
            "n_head·head_dim), twice (n_ff, n_embd), (n_embd, n_ff).",
        ),
        inputs=lambda rng: [
            (2048, 32, 8, 64, 8192),
            (5120, 32, 8, 128, 14336),  # heads that do not add up to the stream's width
            (*_sizes(rng), 64 * int(rng.integers(20, 90))),
            (*_sizes(rng), 64 * int(rng.integers(20, 90))),
        ],
        mistakes=lambda: [
            (lambda *a: shapes(*a)[:, ::-1], "rows and columns are exchanged"),
            (
                lambda e, h, kv, hd, f: shapes(e, h, h, hd, f),
                "keys and values have heads of their own, and fewer",
            ),
            (
                lambda e, h, kv, hd, f: shapes(e, h, kv, e // h, f),
                "a head's width was taken for n_embd / n_head; it is a number of its own",
            ),
        ],
    )
)


def n_params(n_vocab, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, tied):
    layer = int(shapes(n_embd, n_head, n_head_kv, head_dim, n_ff).prod(axis=1).sum())
    tables = n_vocab * n_embd * (1 if tied else 2)
    return tables + n_layer * (layer + 2 * n_embd) + n_embd


def _known(name):
    c = Config.named(name)
    return c.n_vocab, c.n_layer, c.n_embd, c.n_head, c.n_head_kv, c.head_dim, c.n_ff, c.tied


def _model(rng):
    n_embd, n_head, n_head_kv, head_dim = _sizes(rng)
    n_ff, tied = 64 * int(rng.integers(20, 90)), bool(rng.integers(2))
    return 1000 * int(rng.integers(30, 130)), 7, n_embd, n_head, n_head_kv, head_dim, n_ff, tied


register(
    Task(
        "ex01.n_params",
        right=n_params,
        hints=(
            "Seven matrices and two norms a layer; outside of the layers one or two tables, and "
            "one more norm.",
            "A norm has n_embd numbers. A tied model has one table of n_vocab · n_embd, any other "
            "has two.",
            "n_layer · (the seven products + 2 · n_embd) + n_embd + (1 or 2) · n_vocab · n_embd. "
            "Llama-3.2-1B has 1 235 814 400.",
        ),
        inputs=lambda rng: [
            _known("llama-3.2-1b"),
            _known("llama-3-8b"),
            _model(rng),
            _model(rng),
            _model(rng),
        ],
        mistakes=lambda: [
            (lambda *a: n_params(*a) - a[2] - 2 * a[1] * a[2], "the norms are missing"),
            (lambda *a: n_params(*a) - a[2], "the last norm, after the layers, is missing"),
            (lambda *a: n_params(*a[:7], True), "the output matrix is a second table, if not tied"),
            (lambda *a: n_params(*a[:7], False), "a tied model has one table, used twice"),
            (
                lambda v, n, e, h, kv, *rest: n_params(v, n, e, h, h, *rest),
                "keys and values have fewer heads than queries",
            ),
        ],
    )
)


def read_header(data):
    magic, version, n_tensors, n_keys = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF":
        return [0, 0, 0]
    return [version, n_tensors, n_keys]


def _header(version, n_tensors, n_keys):
    return (b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys) + b"\x00" * 8,)


register(
    Task(
        "ex01.header",
        right=read_header,
        hints=(
            "Compare the length of each field with what the chapter says: 4 letters, 4 bytes, 8 "
            "bytes, 8 bytes.",
            "GGUF is little-endian: '<'. And which of the two counts comes first?",
            'struct.unpack_from("<4sIQQ", data) gives all four.',
        ),
        inputs=lambda rng: [
            _header(3, 38, 27),
            _header(2, 291, 19),
            _header(3, int(rng.integers(2**33, 2**40)), int(rng.integers(1, 60))),
            _header(3, int(rng.integers(1, 400)), int(rng.integers(1, 60))),
            (b"GGML" + bytes(range(1, 33)),),
        ],
        mistakes=lambda: [
            (
                lambda d: [0, 0, 0] if d[:4] != b"GGUF" else [(h := read_header(d))[0], h[2], h[1]],
                "the number of tensors comes before the number of keys",
            ),
            (
                lambda d: [0, 0, 0] if d[:4] != b"GGUF" else list(struct.unpack_from(">IQQ", d, 4)),
                "the bytes of a number are read in the wrong order",
            ),
            (
                lambda d: [0, 0, 0] if d[:4] != b"GGUF" else list(struct.unpack_from("<III", d, 4)),
                "the two counts have 8 bytes each, not 4",
            ),
            (
                lambda d: list(struct.unpack_from("<IQQ", d, 4)),
                "a file that does not begin with GGUF is read as if it did",
            ),
        ],
    )
)

register(
    Task(
        "ex01.growth",
        right=lambda layers, heads, width, ff: layers * width,
        question=(
            "A second model has {layers} times as many layers, {heads} times as many query heads "
            "(and as many key/value heads as before), heads {width} times as wide, and a "
            "feed-forward layer {ff} times as wide. How many times as large is its cache for one "
            "token?"
        ),
        given={"layers": 2, "heads": 4, "width": 3, "ff": 5},
        draw=lambda rng: dict(
            zip(
                ("layers", "heads", "width", "ff"),
                (int(x) for x in rng.permutation([2, 3, 4, 5])),
                strict=True,
            )
        ),
        hints=(
            "What is stored for a token? Which of the four numbers appear in that?",
            "2 · n_layer · n_head_kv · head_dim · bytes of a number.",
            "Query heads and the feed-forward layer leave nothing in the cache.",
        ),
        mistakes=lambda layers, heads, width, ff: [
            (layers * heads * width, "queries are not stored, so their number does not count"),
            (layers * heads * width * ff, "the feed-forward layer stores nothing"),
            (layers, "a wider head has longer keys and values"),
            (width, "each layer has a cache of its own"),
        ],
    )
)

register(
    Task(
        "ex01.words",
        right=lambda name: _share_of_words(name),
        rtol=0.01,
        question=(
            "What share of all learned numbers of {name} is in the table (or the two tables) of "
            "n_vocab · n_embd? Answer with a number between 0 and 1."
        ),
        given={"name": "smollm2-135m"},
        draw=lambda rng: {
            "name": pick(
                rng, "llama-3.2-3b", "tinyllama-1.1b", "qwen2-7b", "llama-2-13b", "mistral-nemo"
            )
        },
        hints=(
            "c = Config.named({name!r}) has all the numbers; c.n_params is their sum.",
            "c.tied says whether there is one table or two.",
            "tables · c.n_vocab · c.n_embd / c.n_params",
        ),
        mistakes=lambda name: [
            (100 * _share_of_words(name), "a share is asked for, not a percentage"),
            (1 - _share_of_words(name), "that is the share of the rest"),
            (
                _share_of_words(name) * (2 if Config.named(name).tied else 0.5),
                "look whether the model is tied: one table or two",
            ),
        ],
    )
)


def _share_of_words(name):
    c = Config.named(name)
    return (1 if c.tied else 2) * c.n_vocab * c.n_embd / c.n_params
