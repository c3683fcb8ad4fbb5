"""What a runner of field cases needs from this package: open, encode, decode, logits.

The recorded logits of those cases come from a float32 cache, so the model is opened with one.
"""

import numpy as np

import synapse_edu as se

NUMERICS = se.Numerics.named("llama.cpp").replace(cache="float32")


def load(path, n_ctx=None):
    model = se.load(path, numerics=NUMERICS, n_ctx=n_ctx)
    if "tokenizer.ggml.model" in model.metadata:
        model.tokenizer  # noqa: B018 - a vocabulary that cannot be used must be refused here
    return model


def tokenizer(path):
    return se.load_tokenizer(path)


def encode(tok, text, add_special=True, parse_special=False):
    return tok.encode(text, add_special=add_special, parse_special=parse_special)


def decode(tok, ids):
    return tok.decode(ids)


def logits(model, ids, chunks=None, positions=None):
    """Logits of every position (or of `positions`), the ids cut into `chunks`."""
    cache, rows = model.new_cache(), []
    for size in chunks or [len(ids)]:
        part = ids[cache.n : cache.n + size]
        if size == 1:
            rows.append(model.decode(part[0], cache)[None])
        else:
            rows.append(model.prefill(part, cache, logits="all"))
    out = np.concatenate(rows)  # (n, n_vocab)
    return out if positions is None else out[positions]
