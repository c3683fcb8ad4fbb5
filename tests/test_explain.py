"""Explanations: they tell exactly what encoding does, and nothing in them acts as HTML."""

import html.parser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_files import TINY, bpe, tiny, tokenizer

from synapse_edu.errors import BadArgument, TokenizerProblem
from synapse_edu.tokenizer.explain import MAX_BYTES


@pytest.mark.parametrize("name", TINY)
@given(data=st.data())
def test_ids_are_those_of_encode(name, data):
    tok = tiny(name)
    pieces = st.sampled_from(tok.vocabulary.tokens) | st.text(max_size=5).map(str.encode)
    raw = b"".join(data.draw(st.lists(pieces | st.binary(max_size=3), max_size=8)))
    flags = {"add_special": data.draw(st.booleans()), "parse_special": data.draw(st.booleans())}
    try:
        ids = tok.encode(raw, **flags)
    except TokenizerProblem:
        return
    story = tok.explain(raw, **flags)
    assert story.ids == ids
    assert [i for event in story.events() for i in event.ids] == ids
    replay = story.replay()
    assert len(replay) == 1 + sum(len(unit.merges) for unit in story.units)
    assert [i for part in replay[-1].parts for i in part.ids] == ids
    if tok.vocabulary.kind == "bpe" and raw == raw.decode("utf-8", "replace").encode():
        for unit in story.units:
            assert unit.token is not None or raw[unit.start : unit.end] == unit.raw()


@pytest.mark.parametrize("name", ["smollm", "spm"])
def test_each_merge_was_the_best_candidate(name):
    story = tiny(name).explain("the cat and the other hat 123")
    n = 0
    for unit in story.units:
        for k, (at, _, rank) in enumerate(unit.merges):
            chosen, *others = unit.candidates(k)
            assert (chosen.rank, chosen.position) == (rank, at)
            assert all((rank, at) < (o.rank, o.position) for o in others)
            n += 1
        if unit.merges:
            assert unit.candidates(len(unit.merges)) == []
    assert n > 5


def test_every_kind_of_event_in_order():
    texts = ["<s>", "a", "b", "ab", "<u>", "Ġ"]
    tok = tokenizer(
        bpe(texts, ["a b", "Ġ Ġ"], types=[3, 1, 1, 1, 4, 1], pre="gpt-2", bos_token_id=0,
            eos_token_id=0, add_bos_token=True, add_eos_token=True)
    )  # fmt: skip
    events = list(tok.explain("ab<u>z  b").events())
    assert " ".join(e.kind for e in events) == (
        "begin word merge token special word dropped word token word token token end"
    )
    merge = next(e for e in events if e.kind == "merge")
    assert merge.text == "a + b" and "rank 0 at position 0" in merge.detail
    word = next(e for e in events if e.kind == "word")
    assert word.detail == "letters, after at most one space"
    assert [e.ids for e in events if e.kind == "special"] == [(4,)]
    assert [e.text for e in events if e.kind == "dropped"] == ["z"]


def test_whole_words_and_byte_tokens_are_told():
    llama = tiny("llama-bpe")
    whole = [u for u in llama.explain("the").units if u.whole is not None]
    kinds = {e.kind for e in llama.explain("the").events()}
    assert ("whole" in kinds) == bool(whole)
    assert "bytes" in {e.kind for e in tiny("spm").explain("🦙").events()}
    assert any("score" in e.detail for e in tiny("spm").explain("the cat").events())


def test_competing_candidates_are_named():
    tok = tokenizer(bpe(["a", "b", "c", "ab", "bc"], ["b c", "a b"], pre="gpt-2"))
    (merge,) = [e for e in tok.explain("abc").events() if e.kind == "merge"]
    assert merge.detail == "rank 0 at position 1; comes before 1 other, next a + b (rank 1 at 0)"


def test_the_replay_goes_from_bytes_to_tokens():
    tok = tokenizer(bpe(["a", "b", "c", "ab", "abc"], ["a b", "ab c"], pre="gpt-2"))
    replay = tok.explain("abc").replay()
    texts = [[part.raw for part in state.parts] for state in replay]
    assert texts == [[b"a", b"b", b"c"], [b"ab", b"c"], [b"abc"]]
    assert replay[1].caption.startswith("a + b: rank 0") and len(replay[:2]) == 2
    with pytest.raises(IndexError):
        replay[3]


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


@given(st.text(max_size=20) | st.sampled_from(["<script>alert(1)</script>", "\u202eabc\x1b[31m"]))
def test_nothing_acts_or_hides(text):
    reader = Reader()
    story = tiny("spm").explain(text)
    reader.feed(story._repr_html_())
    assert reader.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}
    for shown in (reader.text, story.table().replace("\n", "")):
        assert not set(shown) & set(map(chr, [*range(32), 0x7F, 0x200B, 0x200E, 0x202E, 0x2066]))


def test_long_stories_are_cut_and_very_long_texts_refused():
    story = tiny("smollm").explain("the cat " * 50)
    assert "more steps" in story.table(max_rows=10) and len(story.table(10).splitlines()) == 12
    with pytest.raises(BadArgument, match="100000"):
        tiny("smollm").explain("a" * (MAX_BYTES + 1))
