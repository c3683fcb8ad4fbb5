"""Token text in a view: escaped, and nothing in it unseen."""

import html.parser
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_edu.views.text import number, safe, short, visible


@pytest.mark.parametrize(
    "token, shown",
    [
        (b" the", "␣the"),
        ("\n\t\r", "␊␉␍"),
        (b"\xc3", "⟨C3⟩"),
        (b"\xf0\x9f", "⟨F0⟩⟨9F⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("\x7f", "␡"),
        ("\u0301", "\u25cc\u0301"),
        (b"", "(empty)"),
        ("猫🐈", "猫🐈"),
        ("\ud800", "⟨ED⟩⟨A0⟩⟨80⟩"),
    ],
)
def test_every_character_can_be_seen(token, shown):
    assert visible(token) == shown


@given(st.binary(max_size=20))
def test_any_bytes_become_printable_text(token):
    text = visible(token)
    assert text
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
    assert not {unicodedata.category(c) for c in text} & hidden


@given(st.text(max_size=30))
def test_escaped_text_is_one_piece_of_data(text):
    class Reader(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.tags = []

        def handle_starttag(self, tag, attributes):
            self.tags.append((tag, dict(attributes)))

    reader = Reader()
    reader.feed(f'<b title="{safe(visible(text))}">{safe(visible(text))}</b>')
    assert reader.tags == [("b", {"title": visible(text)})]


def test_short_keeps_the_beginning():
    assert short(b"abc") == "abc"
    assert short("abcdefghijklmnop", 6) == "abcde…"


@pytest.mark.parametrize(
    "value, shown",
    [(0.5, "0.5"), (1 / 3, "0.3333"), (float("-inf"), "-∞"), (float("inf"), "∞")]
    + [(float("nan"), "NaN"), (-1234567, "-1.235e+06")],
)
def test_numbers(value, shown):
    assert number(value) == shown
