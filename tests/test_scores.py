"""Scores count words, not tokens, and count the right ones."""

import math

import numpy as np
import pytest
from story_parts import small, tokenizer

import synapse_edu as se
from synapse_edu.checkpoint import catalogue
from synapse_edu.study import scores, story_model, storyworld
from synapse_edu.study.curriculum import encode_story
from synapse_edu.study.patching import silence

STORIES = storyworld.stories(4, 5, held_out=True)


def test_judging_one_story():
    story = storyworld.Story(
        [storyworld.Word("Mia"), storyworld.Word(" has", "copy"), storyworld.Word(" tea", "place")]
    )
    ids, word = [0, 5, 6, 7, 8], [-1, -1, 0, 1, 1]  # " tea" is two tokens
    assert scores.judge(story, ids, word, [9, 6, 7, 8]) == [("copy", True), ("place", True)]
    assert scores.judge(story, ids, word, [5, 6, 7, 9]) == [("copy", True), ("place", False)]
    assert scores.judge(story, ids, word, [5, 9, 9, 8]) == [("copy", False), ("place", False)]
    # a word that no token spells is not right
    assert scores.judge(story, ids, [-1, -1, -1, 1, 1], [5, 6, 7, 8])[0] == ("copy", False)


def test_shares():
    found = scores.shares([("copy", True), ("copy", False), ("place", True), ("copy", False)])
    assert found["all"] == 0.5 and found["copy"] == pytest.approx(1 / 3) and found["place"] == 1
    assert math.isnan(found["colour"]) and set(found) == {"all", *storyworld.KINDS}


def test_untrained_parameters_know_little():
    found = scores.scores(story_model.initial(small(), 0), small(), tokenizer(), STORIES)
    assert 0 <= found["all"] < 0.3 and found["loss"] > 3


@pytest.fixture(scope="module")
def model():
    return se.load(catalogue.built_in())


def test_a_loaded_model_is_judged_by_its_own_predictions(model):
    found = scores.rule_scores(model, STORIES)
    right = total = 0
    for story in STORIES:  # the same by hand: ask for each word after everything before it
        for start, end, _ in story.spans():
            before = model.tokenizer.encode(story.text[:start])
            want = model.tokenizer.encode(story.text[start:end], add_special=False)
            logits = model.prefill(before, model.new_cache())
            total += 1
            right += len(want) == 1 and int(np.argmax(logits)) == want[0]
    assert found["all"] == right / total > 0.8


def test_without_attention_nothing_is_understood(model):
    c = model.config
    everything = silence([(i, h) for i in range(c.n_layer) for h in range(c.n_head)])
    found = scores.rule_scores(model, STORIES, everything)
    assert found["possession"] < 0.3 and found["place"] < 0.4


def test_scores_without_each_head(model):
    found = scores.scores_without(model, STORIES[:1])
    assert found["all"].shape == (model.config.n_layer, model.config.n_head)
    ids, word = encode_story(model.tokenizer, STORIES[0])
    assert len(ids) == len(word)
    alone = scores.rule_scores(model, STORIES[:1], silence([(1, 0)]))
    assert found["all"][1, 0] == alone["all"]
