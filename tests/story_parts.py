"""The story world's vocabulary and a small shape, made once for the tests that train."""

from functools import cache

from synapse_edu.config import Rope
from synapse_edu.study import story_model
from synapse_edu.tokenizer.tokenizer import Tokenizer
from synapse_edu.tokenizer.vocabulary import Vocabulary


@cache
def learned():
    """The vocabulary as a GGUF file's metadata."""
    return story_model.vocabulary()


@cache
def tokenizer():
    return Tokenizer(Vocabulary.from_metadata(learned()))


@cache
def small():
    """The built-in model's config, two layers of width 32."""
    n = len(learned()["tokenizer.ggml.tokens"])
    return story_model.story_config(n, 2).replace(
        n_embd=32, n_head=4, head_dim=8, n_ff=64, rope=Rope(n_rot=8)
    )
