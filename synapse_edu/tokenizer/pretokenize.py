r"""Text → words: the cut that comes before any merge, by the regexes of the vocabulary's family.

Merges never cross a word's edge, so the cut decides which merges are possible at all.  A family
is a chain of stages: each stage runs inside every piece that the one before left, a piece's end
is the end of input for its look-ahead, and both the matches and the gaps between them become
pieces.  The stages are llama.cpp's (`llm_tokenizer_bpe`); they run on the collapsed text of
`unicode_classes`, on one character for each code point.

>>> Splitter("llama-bpe").split("It's 12345 €!\n")
['It', "'s", ' ', '123', '45', ' €!\n']
>>> Splitter("gpt-2").split("It's 12345 €!\n")
['It', "'s", ' 12345', ' €!', '\n']
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from .unicode_classes import LETTER, NUMBER, PUNCTUATION, collapse

_L = "A-Za-z" + LETTER
_N = "0-9" + NUMBER
_P = r"!-#%-*,\-./:;?@\[\\\]_{}" + PUNCTUATION
GAP = "left over"


@dataclass(frozen=True)
class Stage:
    """One regex of a chain: its alternatives in order, each with its name in words.

    The alternatives of a stage take every character between them, so that its matches laid end
    to end are the text; the one named `GAP` stands for what the published regex leaves over.
    """

    branches: tuple[tuple[str, str], ...]

    @cached_property
    def plain(self):
        """The alternatives as one regex, without groups: what encoding runs."""
        return re.compile("|".join(pattern for _, pattern in self.branches), re.ASCII)

    @cached_property
    def grouped(self):
        """The same with a group an alternative, so that a match tells which one took it."""
        return re.compile("|".join(f"({pattern})" for _, pattern in self.branches), re.ASCII)

    def named(self, piece, name):
        """(part, branch) of each match in `piece`; a gap keeps `name`, of the stage before."""
        for match in self.grouped.finditer(piece):
            branch = self.branches[match.lastindex - 1][0]
            yield match.group(), name if branch == GAP else branch


def _stage(*branches):
    return Stage(tuple(branches))


def _isolate(name, pattern):
    """A stage that sets matches of `pattern` apart; a gap runs to where the next match starts."""
    return _stage((name, pattern), (GAP, rf"(?:(?!{pattern})[\s\S])+"))


_LOWER_CONTRACTION = ("contraction ('s 't 're …)", "'s|'t|'re|'ve|'m|'ll|'d")
_ANY_CONTRACTION = (
    "contraction ('s 'T 're …)",
    "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]",
)
_LETTERS = ("letters, after at most one other character", rf"[^\r\n{_L}{_N}]?[{_L}]+")
_LINES = ("white space up to line ends", r"\s*[\r\n]+")
_SPACES = ("white space, but for the last before a word", r"\s+(?!\S)")
_LAST_SPACE = ("white space", r"\s+")
_SYMBOLS_LINES = ("symbols, then line ends", rf" ?[^\s{_L}{_N}]+[\r\n]*")

_GPT2 = _stage(
    _LOWER_CONTRACTION,
    ("letters, after at most one space", rf" ?[{_L}]+"),
    ("numbers, after at most one space", rf" ?[{_N}]+"),
    ("symbols, after at most one space", rf" ?[^\s{_L}{_N}]+"),
    _SPACES,
    _LAST_SPACE,  # absent from the published string, but applied by every implementation
)

# Case is known for ASCII alone: any other letter may stand in either run.
_UPPER, _LOWER = f"A-Z{LETTER}", f"a-z{LETTER}"
_BEFORE = rf"[^\r\n{_L}{_N}]?"

SPLITS = {
    "llama-bpe": (
        _stage(
            _ANY_CONTRACTION,
            _LETTERS,
            ("up to three numbers", rf"[{_N}]{{1,3}}"),
            _SYMBOLS_LINES,
            _LINES,
            _SPACES,
            _LAST_SPACE,
        ),
    ),
    "qwen2": (
        _stage(
            _ANY_CONTRACTION,
            _LETTERS,
            ("a single number", f"[{_N}]"),
            _SYMBOLS_LINES,
            _LINES,
            _SPACES,
            _LAST_SPACE,
        ),
    ),
    "tekken": (
        _stage(
            ("letters that end in lower case", rf"{_BEFORE}[{_UPPER}]*[{_LOWER}]+"),
            ("letters that begin in upper case", rf"{_BEFORE}[{_UPPER}]+[{_LOWER}]*"),
            ("a single number", f"[{_N}]"),
            ("symbols, then line ends or slashes", rf" ?[^\s{_L}{_N}]+[\r\n/]*"),
            _LINES,
            _SPACES,
            _LAST_SPACE,
        ),
    ),
    "smollm": (_isolate("a single number", f"[{_N}]"), _GPT2),
    "gpt-2": (_GPT2,),
    "default": (
        _isolate("punctuation", rf"[{_P}$+<=>^~|]+"),
        _GPT2,
        _isolate("numbers", f"[{_N}]+"),
        _isolate("three digits", "[0-9][0-9][0-9]"),
    ),
}


class Splitter:
    """Cuts text into words the way one family does.

    Parameters
    ----------
    split : str
        A key of `SPLITS`.
    """

    def __init__(self, split):
        self.stages = SPLITS[split]

    def split(self, text):
        """The words of `text` in order; joined they are `text` again."""
        kinds = collapse(text)
        pieces = [kinds]
        for stage in self.stages:
            pieces = [part for piece in pieces for part in stage.plain.findall(piece)]
        if kinds is text:
            return pieces
        ends = list(accumulate(map(len, pieces)))
        return [text[end - len(piece) : end] for piece, end in zip(pieces, ends, strict=True)]

    def branches(self, text):
        """(word, name of the alternative that took it) for each word, in order.

        In a chain, the last alternative that is not a gap counts.
        """
        pieces = [(collapse(text), GAP)]
        for stage in self.stages:
            pieces = [part for piece in pieces for part in stage.named(*piece)]
        ends = list(accumulate(len(piece) for piece, _ in pieces))
        return [
            (text[end - len(piece) : end], name)
            for (piece, name), end in zip(pieces, ends, strict=True)
        ]
