"""The story world: its rules hold in every story, and the split is kept."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.study import cast
from synapse_edu.study import storyworld as sw

OWNS = re.compile(r"(\w+) has (?:a|two) (\w+) (\w+)\.")
FAST = settings(max_examples=200, deadline=None, derandomize=True)


def facts(text):
    """Who has what, who is where, what colour: read from the sentences, not from the teller."""
    owner, colour, place = {}, {}, {}
    for sentence in re.findall(r"[^.?]+[.?]", text):
        s = sentence.strip()
        if m := OWNS.fullmatch(s):
            owner[m[3]], colour[m[3]] = m[1], m[2]
        elif m := re.fullmatch(r"(\w+) (?:is in|goes to) the (\w+)\.", s):
            place[m[1]] = m[2]
        elif m := re.fullmatch(r"(\w+) gives (?:her|his) (\w+) to (\w+)\.", s):
            assert owner[m[2]] == m[1]
            owner[m[2]] = m[3]
        elif m := re.fullmatch(r"Now the (\w+) belongs? to (\w+)\.", s):
            assert owner[m[1]] == m[2], text
        elif m := re.fullmatch(r"The (\w+) (?:is|are) (\w+)\.", s):
            if m[1] in colour:
                assert colour[m[1]] == m[2], text
    return owner, colour, place


@FAST
@given(st.integers(0, 10**6), st.booleans())
def test_what_is_told_follows_from_what_was_told(seed, held_out):
    text = sw.story(seed, held_out).text
    facts(text)
    for name, pronoun, place in re.findall(r"Where is (\w+)\? (\w+) is in the (\w+)\.", text):
        before = text[: text.index(f"Where is {name}?")]
        assert facts(before)[2][name] == place
        assert pronoun == ("She" if name in cast.WOMEN else "He")


@FAST
@given(st.integers(0, 10**6), st.booleans())
def test_the_split_is_kept(seed, held_out):
    text = sw.story(seed, held_out).text
    pairs = {(m[0], m[2]) for m in OWNS.findall(text)}
    singular = {(p, t if t in cast.THINGS else t[:-1]) for p, t in pairs}
    assert len(singular) == 2
    assert all(cast.is_held_out(p, t) == held_out for p, t in singular)


@FAST
@given(st.integers(0, 10**6))
def test_drills_use_only_training_pairs_and_true_answers(seed):
    import random

    text = sw.drill(random.Random(seed)).text
    facts(text)
    for person, _, thing in OWNS.findall(text):
        assert not cast.is_held_out(person, thing if thing in cast.THINGS else thing[:-1])


def test_spans_mark_the_words():
    story = sw.story(7)
    assert story.text == sw.story(7).text != sw.story(8).text
    spans = story.spans()
    assert {kind for *_, kind in spans} <= set(sw.KINDS) and len(spans) >= 4
    for start, end, kind in spans:
        word = story.text[start:end]
        assert word.startswith(" ") and word.strip().isalpha(), (word, kind)


def test_lists_are_repeatable_and_the_lexicon_is_complete():
    assert [s.text for s in sw.stories(5, 3)] == [s.text for s in sw.stories(5, 3)]
    words = set(sw.lexicon())
    assert {*cast.WOMEN, *cast.MEN, *cast.COLOURS, *cast.PLACES} <= words
    shares = sum(cast.is_held_out(p, t) for p in cast.WOMEN + cast.MEN for t in cast.THINGS)
    assert 0.15 < shares / (16 * 16) < 0.25
