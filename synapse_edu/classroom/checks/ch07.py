"""Quick checks of chapter 07."""

from ...tokenizer.pretokenize import Splitter
from ...tokenizer.tokenizer import Tokenizer
from ...tokenizer.train import train
from ...tokenizer.vocabulary import Vocabulary
from ..tasks import Task, register


def _with_special():
    tokenizer = Tokenizer(Vocabulary.from_metadata(train("the cat", 2, special=("<|user|>",))))
    return len(tokenizer.encode("<|user|>", add_special=False, parse_special=True))


register(
    Task(
        "07.digits",
        right=lambda: len(Splitter("llama-bpe").split("1234567")),
        hints=(
            "Digits are taken in threes from the left.",
            "123, 456, and what is left?",
            "123 | 456 | 7",
        ),
        mistakes=lambda: [
            (7, "one digit a word is Qwen2's and SmolLM2's way"),
            (1, "all digits together is GPT-2's way"),
            (2, "the digit that is left over is a word too"),
        ],
    )
)
register(
    Task(
        "07.special",
        right=_with_special,
        hints=(
            "With parse_special the name of a control token is cut out of the text.",
            "What is cut out becomes its id.",
            "One name, one id.",
        ),
        mistakes=lambda: [
            (8, "that is one id for each letter; with parse_special the name is one token"),
            (2, "add_special=False adds no begin token"),
        ],
    )
)
