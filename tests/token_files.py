"""Small vocabularies for tests: the recorded ones, and one made by hand."""

from functools import cache
from pathlib import Path

import numpy as np

from synapse_edu.checkpoint.container import open_container
from synapse_edu.tokenizer.tokenizer import Tokenizer
from synapse_edu.tokenizer.vocabulary import Vocabulary

TOKENS = Path(__file__).resolve().parent / "golden" / "tokens"
TINY = sorted(path.stem for path in TOKENS.glob("tiny-*.gguf"))


@cache
def tiny(name):
    """The tokenizer of a recorded tiny vocabulary, without printed notes."""
    container = open_container(TOKENS / f"tiny-{name.removeprefix('tiny-')}.gguf")
    return Tokenizer(Vocabulary.from_metadata(container.metadata), say=None)


def bpe(tokens, merges=(), pre="smollm", types=None, **keys):
    """Metadata of a byte-level vocabulary of these texts."""
    found = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": list(tokens),
        "tokenizer.ggml.merges": list(merges),
    }
    if types is not None:
        found["tokenizer.ggml.token_type"] = np.array(types, np.int32)  # (n_tokens,)
    return found | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def spm(tokens, scores=None, types=None, **keys):
    """Metadata of an SPM vocabulary of these texts."""
    found = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": list(tokens)}
    if scores is not None:
        found["tokenizer.ggml.scores"] = np.array(scores, np.float32)  # (n_tokens,)
    if types is not None:
        found["tokenizer.ggml.token_type"] = np.array(types, np.int32)  # (n_tokens,)
    return found | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def tokenizer(metadata):
    return Tokenizer(Vocabulary.from_metadata(metadata), say=None)
