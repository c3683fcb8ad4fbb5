"""What a step of training sees: packed documents, their weights, and the order of the lessons."""

import random

import numpy as np
import pytest
from story_parts import learned, small, tokenizer

from synapse_edu.study import curriculum, storyworld
from synapse_edu.study.recipe import Recipe


def test_batches():
    recipe = Recipe(n_batch=3, n_pos=64)
    for step in (0, 5000):
        tokens, targets, weights, starts = curriculum.batch(tokenizer(), small(), recipe, step)
        assert tokens.shape == targets.shape == weights.shape == starts.shape == (3, 64)
        assert np.array_equal(tokens[:, 1:], targets[:, :-1])
        assert np.array_equal(tokens[np.arange(3)[:, None], starts], np.zeros((3, 64)))
    assert set(np.unique(weights)) <= {1.0, recipe.rule_weight, 0.0}


def test_a_step_is_drawn_from_its_number_and_the_seed():
    recipe = Recipe(n_batch=2, n_pos=32)

    def drawn(step, seed=1):
        other = Recipe(n_batch=2, n_pos=32, seed=seed)
        return curriculum.batch(tokenizer(), small(), other if seed != 1 else recipe, step)

    assert all(np.array_equal(a, b) for a, b in zip(drawn(7), drawn(7), strict=True))
    assert not np.array_equal(drawn(7)[0], drawn(8)[0])
    assert not np.array_equal(drawn(7)[0], drawn(7, seed=2)[0])


def test_it_begins_with_repeats_and_ends_with_stories():
    recipe = Recipe(n_batch=32, n_pos=128)

    def share_of_words(step):
        """Share of positions whose token is a frequent word of stories, a full stop."""
        tokens, *_ = curriculum.batch(tokenizer(), small(), recipe, step)
        return np.mean(tokens == tokenizer().encode(".", add_special=False)[0])

    assert share_of_words(0) < 0.5 * share_of_words(5000)


def test_only_the_repetition_counts():
    ids, weights = curriculum.repeat_document(random.Random(0), 300)
    period = next(n for n in range(6, 25) if ids[1 : 1 + n] == ids[1 + n : 1 + 2 * n])
    assert ids[0] == 0 and (len(ids) - 1) % period == 0
    assert weights == [0.0] * (1 + period) + [1.0] * (len(ids) - 1 - period)


@pytest.mark.parametrize("seed", range(20))
def test_each_checked_word_has_its_tokens(seed):
    story = storyworld.story(seed, held_out=seed % 2 == 0)
    ids, word = curriculum.encode_story(tokenizer(), story)
    assert ids[0] == 0 and len(ids) == len(word) and word[0] == -1
    assert tokenizer().decode(ids[1:]) == story.text
    for i, (start, end, _) in enumerate(story.spans()):
        tokens = [t for t, w in zip(ids, word, strict=True) if w == i]
        assert tokenizer().decode(tokens) == story.text[start:end]


def test_the_vocabulary_has_a_token_for_every_word():
    words = [" " + w for w in storyworld.lexicon() if w.isalpha()]
    assert all(len(tokenizer().encode(w, add_special=False)) == 1 for w in words)
    assert len(learned()["tokenizer.ggml.tokens"]) < 600
