"""Tests of long context, and the documents that train it."""

import random

import numpy as np
import pytest
from story_parts import tokenizer

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.study import judge, lengthen, needle
from synapse_edu.study.export import parameters


@pytest.mark.parametrize("kind", needle.KINDS)
@pytest.mark.parametrize("n_tokens, depth", [(48, 0.0), (100, 0.5), (200, 1.0)])
def test_a_case_has_one_right_answer(kind, n_tokens, depth):
    tok = tokenizer()
    for seed in range(5):
        one = needle.case(tok, kind, n_tokens, depth, seed)
        assert n_tokens - 7 <= len(one.ids) <= n_tokens and list(one.ids) == tok.encode(one.text)
        *told, question = judge.sentences(one.text)
        notes = judge.Notes.of(" ".join(told))
        right, other = (tok.decode([i]) for i in (one.answer, one.other))
        end = "" if kind == "retrieve" else f" {_noun(notes, question, kind)}"
        assert notes.verdict(f"{question}{right}{end}.") == "supported"
        assert notes.verdict(f"{question}{other}{end}.") == "false"


def _noun(notes, question, kind):
    """The thing that the asked person has at the end."""
    person = question.split()[0]
    (noun,) = [noun for noun, owner in notes.owner.items() if owner == person]
    return noun


def test_depth_says_where_the_fact_stands():
    tok = tokenizer()
    at = [needle.case(tok, "retrieve", 120, d).text.index(" has a ") for d in (0, 0.5, 1)]
    assert at[0] < 10 < at[1] < at[2]


def test_too_short_is_refused():
    with pytest.raises(BadArgument, match="tokens"):
        needle.case(tokenizer(), "combine", 20)
    with pytest.raises(BadArgument, match="depth"):
        needle.case(tokenizer(), "retrieve", 100, depth=2)


def test_predictions_are_the_engines():
    model = se.load(numerics="textbook")
    p, config, tok = parameters(model), model.config, model.tokenizer
    rows = [needle.case(tok, "retrieve", n, 0.5, n).ids for n in (24, 60, 90)]
    best = needle.predictions(p, config, rows, at_once=100)
    assert best == [int(model.prefill(list(row), model.new_cache()).argmax()) for row in rows]


def test_the_built_in_model_finds_a_near_fact_and_not_a_far_one():
    model = se.load()
    given = parameters(model), model.config, model.tokenizer
    near = needle.accuracy(*given, "retrieve", 40, n=6)
    far = needle.accuracy(*given, "retrieve", 250, n=6)
    assert near.shape == (3,) and near.mean() > 0.9 and far.mean() < 0.5
    with pytest.raises(BadArgument):
        needle.accuracy(*given, "retrieve", 5)


@pytest.mark.parametrize("seed", range(8))
def test_a_lengthened_story_stays_true(seed):
    n = 60 + 20 * seed
    text = lengthen.lengthened(seed, n, weather=seed / 8).text
    assert n - 8 < len(tokenizer().encode(text)) - 1 <= n or seed == 0
    told = judge.sentences(text)
    for i, sentence in enumerate(told):
        kind, _ = judge.read(sentence)
        assert kind is not None
        if kind in ("belongs", "where", "colour", "likes"):
            assert judge.judge(" ".join(told[:i]), sentence).n_distinct == 1


def test_no_weather_means_none():
    rng = random.Random(0)
    lines = [lengthen.filler(rng, ("Mia",), weather=0.0) for _ in range(50)]
    assert all(line.startswith("Mia goes to the ") for line in lines)
    assert not any(lengthen.filler(rng, ("Mia",), weather=1.0).startswith("Mia") for _ in range(50))


def test_a_solved_case_ends_with_its_answer():
    tok = tokenizer()
    one = needle.case(tok, "own", 60, 0.5, 3)
    assert needle.solved(tok, "own", 60, 0.5, 3) == [*one.ids, one.answer]
    assert np.all(np.array(one.ids[:1]) == 0)
