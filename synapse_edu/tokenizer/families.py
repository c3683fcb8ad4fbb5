"""The families of byte-level BPE, by the name that a file gives in `tokenizer.ggml.pre`.

A name stands for a way to cut text into words and for four defaults.  Several names share one
way of cutting; llama.cpp keeps the table in `llama_vocab::impl::load`.
"""

from dataclasses import dataclass

from ..errors import TokenizerProblem


@dataclass(frozen=True)
class Family:
    """What a pre-tokenizer name implies.

    Attributes
    ----------
    split : {"llama-bpe", "qwen2", "tekken", "smollm", "gpt-2", "default"}
        How text is cut into words (see `pretokenize.SPLITS`).
    ignore_merges : bool
        A word that is a token is taken whole, without merging.
    add_bos : bool
        Whether encoding puts the begin token in front, unless the file says otherwise.
    clean_spaces : bool
        Whether decoding closes gaps before punctuation.
    bos : int or None
        The begin token when the file names none.
    """

    split: str
    ignore_merges: bool = False
    add_bos: bool = False
    clean_spaces: bool = True
    bos: int | None = 11


_TABLE = [
    ("default", Family("default")),
    (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        Family("llama-bpe", ignore_merges=True, add_bos=True),
    ),
    ("dbrx smaug-bpe", Family("llama-bpe")),
    ("chatglm-bpe", Family("llama-bpe", bos=None)),
    ("glm4 glm5", Family("llama-bpe", ignore_merges=True, bos=None)),
    ("tekken", Family("tekken", ignore_merges=True, add_bos=True, clean_spaces=False)),
    (
        "qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan grok-2 solar-open",
        Family("qwen2", clean_spaces=False),
    ),
    ("megrez stablelm2", Family("qwen2")),
    ("smollm command-r", Family("smollm", clean_spaces=False)),
    ("starcoder refact codeshell exaone minerva-7b mellum2", Family("smollm")),
    (
        "gpt-2 phi-2 mellum gigachat a.x-4.0 mpt olmo jais exaone4 jina-es jina-de "
        "jina-v2-es jina-v2-de modern-bert",
        Family("gpt-2"),
    ),
    ("trillion granite-docling", Family("gpt-2", clean_spaces=False)),
]

FAMILIES = {name: family for names, family in _TABLE for name in names.split()}


def family_of(pre):
    """The Family behind a pre-tokenizer name.

    >>> family_of("llama3").split
    'llama-bpe'

    Raises
    ------
    TokenizerProblem
        For a name that is not in the table: a wrong guess would give wrong ids in silence.
    """
    try:
        return FAMILIES[pre]
    except KeyError:
        raise TokenizerProblem(
            f"tokenizer.ggml.pre is {pre!r}, a way of cutting text that this package does not "
            f"know, and any other would give wrong ids. Known: {', '.join(sorted(FAMILIES))}."
        ) from None
