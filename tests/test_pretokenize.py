"""Text → words: the generated classes, the chains, and names for what took each word."""

import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_edu.tokenizer import unicode_classes
from synapse_edu.tokenizer.pretokenize import SPLITS, Splitter
from synapse_edu.tokenizer.unicode_classes import class_table, collapse

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_is_what_its_script_writes():
    script = ROOT / "data" / "unicode" / "make_table.py"
    assert subprocess.run([sys.executable, str(script), "--check"], check=False).returncode == 0


def test_the_classes_are_unicode_15_1():
    names = {
        "L": unicode_classes.LETTER,
        "N": unicode_classes.NUMBER,
        "P": unicode_classes.PUNCTUATION,
        "M": unicode_classes.MARK,
        "S": unicode_classes.SYMBOL,
    }
    table = class_table()
    differing = [
        code
        for code in range(128, 0x110000)
        if table[code] != ord(unicode_classes.SPACE)
        and chr(table[code]) != names.get(unicodedata.category(chr(code))[0], unicode_classes.OTHER)
    ]
    if unicodedata.unidata_version == "15.1.0":
        assert differing == []
    # Other versions know fewer characters, or more; what both know hardly ever changes.
    theirs = [c for c in differing if unicodedata.category(chr(c)) != "Cn"]
    both = [c for c in theirs if table[c] != ord(unicode_classes.OTHER)]
    assert len(both) < 20


def test_white_space_is_the_property_and_nothing_else():
    white = [c for c in range(0x110000) if chr(class_table()[c]) in "\t\n\v\f\r "]
    assert white == [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)] + [
        0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
    ]  # fmt: skip


def test_collapse_keeps_the_length_of_any_text():
    text = "a\ud800\U0010ffff é\u3000٣"
    assert collapse(text) == "a\xd0\xd0 \xd2\x0b\xd1" and len(collapse(text)) == len(text)


@pytest.mark.parametrize(
    "family, text, words",
    [
        ("llama-bpe", "I'LL 12345", ["I", "'LL", " ", "123", "45"]),
        ("llama-bpe", "'ſ", ["'ſ"]),
        ("llama-bpe", "a  \n b", ["a", "  \n", " b"]),
        ("qwen2", "x12", ["x", "1", "2"]),
        ("gpt-2", "it's'S", ["it", "'s", "'", "S"]),
        ("gpt-2", "a   ", ["a", "   "]),
        ("smollm", "a  1", ["a", "  ", "1"]),
        ("tekken", "HelloWorld ABCdef//\n", ["Hello", "World", " ABCdef", "//\n"]),
        ("tekken", "हि", ["ह", "ि"]),
        ("default", "the 1234!", ["the", " ", "123", "4", "!"]),
        ("default", "`$x", ["`", "$", "x"]),
    ],
)
def test_words(family, text, words):
    assert Splitter(family).split(text) == words


@pytest.mark.parametrize("family", SPLITS)
@given(text=st.text(max_size=60))
def test_words_are_the_text_and_have_names(family, text):
    splitter = Splitter(family)
    words = splitter.split(text)
    assert "".join(words) == text and "" not in words
    assert [word for word, _ in splitter.branches(text)] == words


def test_branches_in_words():
    named = dict(Splitter("llama-bpe").branches("It's 12!\n"))
    assert "contraction" in named["'s"] and named["12"] == "up to three numbers"
    assert dict(Splitter("default").branches("ab 123"))["123"] == "three digits"
