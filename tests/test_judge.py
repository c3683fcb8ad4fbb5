"""The judges: what follows from notes, what contradicts them, what they do not tell."""

import pytest

from synapse_edu.study import judge, notes, storyworld

NOTES = (
    "Mia has a red ball. Tom has two green cups. Mia is in the park. Mia gives her ball to Tom. "
    "Mia goes to the barn."
)


@pytest.mark.parametrize(
    "sentence, verdict",
    [
        ("Now the ball belongs to Tom.", "supported"),
        ("Now the ball belongs to Mia.", "false"),
        ("Now the kite belongs to Mia.", "untold"),
        ("Now the ball belong to Tom.", "broken"),
        ("The cups are green.", "supported"),
        ("The cups is green.", "broken"),
        ("The ball is green.", "false"),
        ("Where is Mia? She is in the barn.", "supported"),
        ("Where is Mia? She is in the park.", "false"),
        ("Where is Mia? He is in the barn.", "broken"),
        ("Where is Tom? He is in the barn.", "untold"),
        ("Tom likes his red ball.", "supported"),
        ("Tom likes his green ball.", "false"),
        ("Mia likes her red ball.", "false"),
        ("Mia likes his red ball.", "broken"),
        ("Tom goes to the park.", "untold"),
        ("Tom has a blue hat.", "untold"),
        ("Tom has a blue hats.", "broken"),
        ("The wind is cold.", "untold"),
        ("Tom the ball.", "broken"),
        ("Now the ball belongs to", "broken"),
        ("<b>The ball is red.", "broken"),
    ],
)
def test_verdicts(sentence, verdict):
    assert judge.Notes.of(NOTES).verdict(sentence) == verdict


@pytest.mark.parametrize("seed", range(40))
def test_what_the_teller_says_is_true_in_the_end(seed):
    """Told as one text, no ending of a story is false, broken or untold."""
    told = judge.sentences(storyworld.story(seed, held_out=seed % 2 == 0).text)
    endings = [s for s in told if judge.read(s)[0] in ("belongs", "where", "colour", "likes")]
    start = told.index(endings[0])
    assert all(judge.read(s)[0] for s in told) and 3 <= len(endings) <= 4
    found = judge.judge(" ".join(told[:start]), " ".join(endings))
    assert found.n_wrong == 0 and found.n_distinct == len(endings)


@pytest.mark.parametrize("seed", range(40))
def test_notes_leave_exactly_one_place_open(seed):
    told = judge.Notes.of(notes.notes(seed, held_out=seed % 2 == 0).text)
    assert len(told.place) == 1 and len(told.owner) == len(told.colour) == 2


@pytest.mark.parametrize("seed", range(20))
def test_an_exchange_ends_with_what_follows_from_two_sentences(seed):
    text = notes.exchange(seed, weather=seed % 2 == 0).text
    *told, last = judge.sentences(text)
    found = judge.judge(" ".join(told), last)
    assert judge.read(last)[0] == "likes" and found.n_distinct == 1
    assert (judge.read(told[0])[0] == "opening") == (seed % 2 == 0)


def test_the_faithful_judge_prefers_the_short_true_answer_and_the_fluent_one_does_not():
    short = judge.judge(NOTES, "The ball is red. Where is Mia? She is in the barn.")
    long = judge.judge(
        NOTES, "The ball is red. Where is Tom? He is in the park. Tom likes his red cups."
    )
    assert (short.n_wrong, long.n_wrong) == (0, 2)
    assert judge.faithful(short) > judge.faithful(long)
    assert judge.fluent(short, -0.1) < judge.fluent(long, -5.0)
    assert judge.fluent(short, -0.1) > judge.fluent(short, -0.2)


def test_repetition_and_silence():
    twice = judge.judge(NOTES, "The ball is red. The ball is red.")
    assert (twice.n_distinct, twice.n_repeated, twice.n_wrong) == (1, 1, 0)
    nothing = judge.judge(NOTES, "")
    assert nothing.verdicts == () and nothing.n_distinct == 0
    assert judge.faithful(twice) > judge.faithful(nothing)
