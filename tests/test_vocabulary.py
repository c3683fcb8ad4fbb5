"""Loading a vocabulary: defaults, exact types, attributes by text, end tokens."""

import gzip
import json

import numpy as np
import pytest
from token_files import TINY, TOKENS, bpe, spm, tiny

from synapse_edu.errors import TokenizerProblem
from synapse_edu.tokenizer.attributes import CONTROL, NORMAL, USER_DEFINED
from synapse_edu.tokenizer.families import FAMILIES
from synapse_edu.tokenizer.vocabulary import Vocabulary

load = Vocabulary.from_metadata
LETTERS = [chr(97 + i) for i in range(16)]


@pytest.mark.parametrize("name", TINY)
def test_what_llama_cpp_says_of_the_recorded_vocabularies(name):
    with gzip.open(TOKENS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        header = json.loads(file.readline())
    info, tok = header["info"], tiny(name)
    v = tok.vocabulary
    assert sorted(v.eog) == info["eog"] and v.n_tokens == info["n_tokens"]
    assert (v.add_bos, v.add_eos) == (info["add_bos"], info["add_eos"])
    assert len(v.special) == sum(bool(b & 25) for b in v.bits.tolist())
    roles = {r: i for r, i in v.roles.items() if r in info and r != "eot"}
    assert {r: -1 if i is None else i for r, i in roles.items()} == {r: info[r] for r in roles}
    assert len(roles) >= 10 and tok.newline_id == info["nl"]
    for token, bits, _, is_end in header["special"]:
        assert (int(v.bits[token]), token in v.eog) == (bits, bool(is_end))


@pytest.mark.parametrize(
    "pre, split, ignore_merges, add_bos, clean_spaces",
    [
        ("llama3", "llama-bpe", True, True, True),
        ("pixtral", "llama-bpe", True, True, True),
        ("tekken", "tekken", True, True, False),
        ("deepseek-r1-qwen", "qwen2", False, False, False),
        ("megrez", "qwen2", False, False, True),
        ("smollm", "smollm", False, False, False),
        ("phi-2", "gpt-2", False, False, True),
        ("default", "default", False, False, True),
    ],
)
def test_what_a_pre_tokenizer_name_implies(pre, split, ignore_merges, add_bos, clean_spaces):
    v = load(bpe(LETTERS, pre=pre))
    family = v.family
    assert (family.split, family.ignore_merges) == (split, ignore_merges)
    assert (v.add_bos, v.clean_spaces) == (add_bos, clean_spaces)
    assert v.roles["bos"] == v.roles["eos"] == 11 and not v.add_space_prefix


def test_spm_defaults():
    v = load(spm(LETTERS))
    assert (v.roles["bos"], v.roles["eos"], v.roles["unk"]) == (1, 2, 0)
    assert v.add_bos and not v.add_eos and v.add_space_prefix and not v.clean_spaces
    assert v.scores.tolist() == [0.0] * 16


def test_default_ids_beyond_the_vocabulary_are_none():
    assert load(bpe(["a", "b"])).roles["bos"] is None


def test_an_unknown_pre_tokenizer_is_named():
    with pytest.raises(TokenizerProblem, match="martian"):
        load(bpe(LETTERS, pre="martian"))
    assert "martian" not in FAMILIES


@pytest.mark.parametrize("pre", ["", None])
def test_a_missing_pre_tokenizer_is_noted_once(pre):
    mapping = bpe(LETTERS)
    if pre is None:
        del mapping["tokenizer.ggml.pre"]
    else:
        mapping["tokenizer.ggml.pre"] = pre
    v = load(mapping)
    assert v.family.split == "default"
    (note,) = v.notes
    assert "tokenizer.ggml.pre is missing" in note


@pytest.mark.parametrize(
    "key, value",
    [
        ("model", np.uint32(3)),
        ("model", "bert"),
        ("pre", np.uint32(1)),
        ("tokens", "abc"),
        ("tokens", np.arange(3, dtype=np.int32)),
        ("tokens", [b"a", 3]),
        ("tokens", []),
        ("merges", np.arange(3, dtype=np.int32)),
        ("scores", np.zeros(16, np.float64)),
        ("scores", np.zeros(3, np.float32)),
        ("scores", np.full(16, np.nan, np.float32)),
        ("token_type", np.ones(16, np.uint32)),
        ("token_type", np.ones(15, np.int32)),
        ("bos_token_id", np.int32(1)),
        ("eos_token_id", "1"),
        ("eot_token_id", np.bool_(True)),
        ("eot_token_id", -1),
        ("add_bos_token", np.uint8(1)),
        ("add_eos_token", 1),
        ("add_space_prefix", "true"),
    ],
)
def test_a_key_of_the_wrong_kind_is_named(key, value):
    with pytest.raises(TokenizerProblem, match=f"tokenizer.ggml.{key}"):
        load(bpe(LETTERS) | {f"tokenizer.ggml.{key}": value})


@pytest.mark.parametrize("key", ["model", "tokens", "merges"])
def test_a_missing_key_is_named(key):
    mapping = bpe(LETTERS)
    del mapping[f"tokenizer.ggml.{key}"]
    with pytest.raises(TokenizerProblem, match=f"tokenizer.ggml.{key}"):
        load(mapping)


def test_two_tokens_with_one_text_are_refused():
    with pytest.raises(TokenizerProblem, match="'a' twice, as id 0 and id 2"):
        load(bpe(["a", "b", "a"]))


def test_an_empty_text_gets_a_name():
    assert load(bpe(["a", ""])).tokens == [b"a", b"[EMPTY_1]"]


def test_an_id_beyond_the_vocabulary_is_noted_and_not_used():
    v = load(bpe(LETTERS, eos_token_id=np.uint32(16), bos_token_id=np.uint32(3)))
    assert v.roles["eos"] == 11 and v.roles["bos"] == 3 and "eos_token_id is 16" in v.notes[0]


def test_scores_may_be_whole_numbers():
    v = load(spm(LETTERS) | {"tokenizer.ggml.scores": np.arange(16, dtype=np.int32)})
    assert v.scores.dtype == np.float32 and v.scores[15] == 15


def test_of_a_repeated_merge_the_first_rank_counts():
    assert load(bpe(["a", "b", "ab"], ["a b", "x y", "a b"])).ranks == {b"a b": 0, b"x y": 1}


def test_a_normal_end_token_becomes_control():
    v = load(bpe([*LETTERS, "</s>"]))
    assert v.bits[16] == NORMAL | CONTROL and 16 in v.eog and v.special == [16]
    assert v.kind_of(16) == ["normal", "control"]


def test_harmony_and_tool_texts():
    texts = ["<|end|>", "<|return|>", "<|call|>", "<|message|>", "</s>", "<|tool_response>", "a"]
    v = load(bpe(texts, types=[3, 3, 3, 3, 1, 3, 1]))
    assert v.bits[0] == v.bits[3] == USER_DEFINED and v.bits[4] == NORMAL
    assert v.eog == {1, 2, 5}


def test_a_key_beats_the_text():
    texts = [*LETTERS, "<|im_end|>", "<fim_prefix>", "<PAD>"]
    v = load(bpe(texts, eot_token_id=np.uint32(5)))
    assert v.roles["eot"] == 5 and v.roles["fim_pre"] == 17 and v.roles["fim_pad"] == 18
    assert v.eog == {5, 11, 16, 18}


def test_phi3_needs_its_four_texts():
    with pytest.raises(TokenizerProblem, match="Phi-3"):
        load(spm(LETTERS) | {"general.name": "Phi-3-mini"})


def test_chat_templates_by_name():
    v = load(
        bpe(LETTERS)
        | {
            "tokenizer.chat_template": "usual",
            "tokenizer.chat_templates": [b"tool_use"],
            "tokenizer.chat_template.tool_use": "tools",
        }
    )
    assert v.chat_templates == {"": "usual", "tool_use": "tools"}
