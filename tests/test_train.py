"""Training a small BPE, and loading what it learned into the engine."""

import pytest

from synapse_edu.checkpoint.container import open_container
from synapse_edu.checkpoint.writer import write_gguf
from synapse_edu.errors import BadArgument
from synapse_edu.tokenizer.tokenizer import Tokenizer
from synapse_edu.tokenizer.train import END, train
from synapse_edu.tokenizer.vocabulary import Vocabulary

TEXT = "low lower lowest low new newer newest wide wider widest. " * 3


def learned(n=30, **options):
    return Vocabulary.from_metadata(train(TEXT, n, **options))


def test_the_first_merges_are_the_most_frequent_pairs():
    merges = train("low lower lowest low", n_merges=3)["tokenizer.ggml.merges"]
    assert merges == [b"l o", b"lo w", "Ġ low".encode()]


def test_the_same_text_learns_the_same():
    first, second = train(TEXT, 40), train(TEXT, 40)
    assert first["tokenizer.ggml.merges"] == second["tokenizer.ggml.merges"]
    assert first["tokenizer.ggml.tokens"] == second["tokenizer.ggml.tokens"]


def test_the_engine_loads_it_and_text_gets_shorter():
    plain, tok = Tokenizer(learned(0)), Tokenizer(learned(30))
    for text in (TEXT, "unseen ünïcode 🦙\x00"):
        assert tok.decode(tok.encode(text)) == text
    assert len(tok.encode(TEXT)) < len(plain.encode(TEXT)) / 2
    assert tok.vocabulary.n_tokens == 1 + 256 + len(tok.vocabulary.ranks) > 270
    assert tok.vocabulary.eog == {0} and tok.vocabulary.tokens[0] == END.encode()
    assert tok.encode("low")[0] == 0


def test_learned_merges_give_back_the_words_of_the_text():
    tok = Tokenizer(learned(200))
    assert len(tok.encode(" lowest", add_special=False)) == 1


def test_it_stops_when_no_pair_repeats():
    assert len(train("abc", 10)["tokenizer.ggml.merges"]) == 0
    assert train("", 10)["tokenizer.ggml.merges"] == []


@pytest.mark.parametrize("pre", ["llama-bpe", "gpt-2", "qwen2", "tekken"])
def test_other_families(pre):
    tok = Tokenizer(learned(20, pre=pre))
    assert tok.decode(tok.encode("the newest 123!")) == "the newest 123!"


def test_through_a_gguf_file(tmp_path):
    path = tmp_path / "learned.gguf"
    metadata = train(TEXT, 30)
    write_gguf(path, {"general.architecture": "llama"} | metadata, {})
    read = Vocabulary.from_metadata(open_container(path).metadata)
    assert read.tokens == learned(30).tokens and read.ranks == learned(30).ranks


def test_a_negative_number_of_merges():
    with pytest.raises(BadArgument):
        train("a", -1)
