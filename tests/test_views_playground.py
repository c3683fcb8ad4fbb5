"""The tokenizer playground without a browser: chips, replay, keys, hostile text."""

from pathlib import Path

import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.views.playground import TokenizerPlayground

TOKENS = Path(__file__).parent / "golden" / "tokens"


@pytest.fixture(scope="module")
def tokenizers():
    names = ("tiny-llama-bpe", "tiny-qwen2", "tiny-spm", "tiny-tekken")
    return {name: se.load_tokenizer(TOKENS / f"{name}.gguf") for name in names}


@pytest.fixture
def view(tokenizers):
    return TokenizerPlayground(tokenizers, "the cat sat")


def test_chips_have_ids_and_bytes(view, tokenizers):
    for name, tok in tokenizers.items():
        ids = tok.encode("the cat sat", add_special=False)
        assert f"{name}: {len(ids)} tokens" in view.html
        assert f"[{', '.join(map(str, ids))}]" in view.html
        assert f"id {ids[0]}, bytes {tok.piece(ids[0]).hex(' ')}" in view.html


def test_the_replay_ends_in_the_tokens(view, tokenizers):
    last = int(view.values()["step"])
    assert last > 0
    view.press("Home")
    assert view.values()["step"] == "0" and f"<b>0 of {last}</b>" in view.html
    seen = []
    for _ in range(last):
        view.press("ArrowRight")
        seen.append(view.html)
    assert len(set(seen)) == last and view.values()["step"] == str(last)
    view.press("ArrowRight")
    assert view.values()["step"] == str(last)
    view.press("ArrowDown")
    assert view.state.chosen == 1 and "tiny-qwen2" in view.html


def test_controls(view, tokenizers):
    first = next(iter(tokenizers.values()))
    special = first.piece(first.vocabulary.roles["bos"]).decode()
    view.choose("text", special)
    plain = len(first.encode(special, add_special=False))
    assert f"{plain} tokens" in view.html and plain > 1
    view.choose("parse_special", "yes")
    assert "tiny-llama-bpe: 1 token " in view.html
    view.choose("chosen", "2")
    assert view.state.chosen == 2
    view.choose("chosen", "9")
    assert isinstance(view.error, BadArgument) and view.state.chosen == 2
    view.choose("text", "a")
    assert view.error is None


HOSTILE = [
    "",
    "<script>alert(1)</script>",
    "\u202eabc\u2066\x00\x1b[31m",
    "👩‍👩‍👧 ok " * 3,
    "e\u0301" * 50,
    "\ud800",
    "$x$ \\(y\\)",
    "A" * 30_000,
    "𐍈" * 3,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_shown_and_never_acts(view, text):
    view.choose("text", text)
    assert view.error is None
    for bad in ("<script", "\u202e", "\u2066", "\x00", "\x1b"):
        assert bad not in view.html
    assert len(view.html) < 400_000
    assert view.static().count("<script") == 0


def test_at_most_four(tokenizers):
    with pytest.raises(BadArgument, match="1 to 4"):
        TokenizerPlayground({})
    five = {str(i): t for i, t in enumerate([*tokenizers.values(), tokenizers["tiny-spm"]])}
    with pytest.raises(BadArgument, match="1 to 4"):
        TokenizerPlayground(five)
    assert "1 to 4" not in TokenizerPlayground(tokenizers["tiny-spm"], "x").html
