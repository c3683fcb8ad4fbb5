"""Why a text has these ids: every cut and every merge, in order, with its reason.

An explanation runs the encoder's own parts with a log attached, so it cannot tell another story
than `encode`.  It is a list of units (an added token, a special token, a word of BPE, a stretch
of SPM) and knows three ways to tell them: as a table, as HTML, and as a replay to step through.

>>> print(tokenizer.explain("the <s>").table())              # doctest: +SKIP
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import BadArgument
from .attributes import USER_DEFINED
from .spm import characters
from .unit import Unit
from .utf8 import code_point_ends, decode_lenient
from .visible import visible

MAX_BYTES = 100_000
"""Texts longer than this are not explained: nobody reads a million merges."""


class Event(NamedTuple):
    """One line of the story: what happened, to which text, why, and the ids that came out."""

    kind: str
    text: str
    detail: str
    ids: tuple[int, ...]


class State(NamedTuple):
    """The text between two merges: its parts (see `unit.Part`), and what just happened."""

    parts: tuple
    caption: str


@dataclass(frozen=True, eq=False)
class Explanation:
    """How one text became ids.

    Attributes
    ----------
    text : bytes
    units : tuple of Unit
        In the order of the text.
    """

    text: bytes
    units: tuple[Unit, ...] = field(repr=False)

    @property
    def ids(self):
        """All ids, equal to what `encode` gives."""
        return [token for unit in self.units for part in unit.parts() for token in part.ids]

    def events(self):
        """Yield every Event in order."""
        for unit in self.units:
            yield from _events(unit)

    def table(self, max_rows=200):
        """The story as plain text, a line an event; what is beyond `max_rows` is counted."""
        rows, more = self._rows(max_rows)
        head = ("what", "text", "ids", "why")
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
        lines = [
            "  ".join([*(cell.ljust(w) for cell, w in zip(row[:3], widths, strict=True)), row[3]])
            for row in [head, *rows]
        ]
        return "\n".join(line.rstrip() for line in lines + ([more] if more else []))

    def _repr_html_(self, max_rows=200):
        rows, more = self._rows(max_rows)
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        note = f"<p>{html.escape(more)}</p>" if more else ""
        return (
            '<table class="se-explanation"><thead><tr><th scope="col">what</th>'
            '<th scope="col">text</th><th scope="col">ids</th><th scope="col">why</th></tr>'
            f'</thead><tbody dir="ltr">{cells}</tbody></table>{note}'
        )

    def _rows(self, max_rows):
        rows, n = [], 0
        for n, event in enumerate(self.events(), 1):
            if n <= max_rows:
                ids = " ".join(map(str, event.ids))
                rows.append((event.kind, event.text, ids, event.detail))
        return rows, f"… and {n - max_rows} more steps" if n > max_rows else ""

    def replay(self):
        """The states of the text, before the first merge to after the last: a lazy sequence."""
        return Replay(self.units)


class Replay(Sequence):
    """State i is the text after i merges, units merging one after the other."""

    def __init__(self, units):
        self._units = units
        self._steps = [(u, k) for u, unit in enumerate(units) for k in range(len(unit.merges))]

    def __len__(self):
        return len(self._steps) + 1

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index == 0:
            return State(self._parts(0, 0), "special tokens and words are cut; nothing is merged")
        unit, k = self._steps[index - 1]  # which unit, and which of its merges
        event = _merge_event(self._units[unit], k)
        return State(self._parts(unit, k + 1), f"{event.text}: {event.detail}")

    def _parts(self, current, k):
        parts = []
        for u, unit in enumerate(self._units):
            parts += unit.parts(len(unit.merges) if u < current else k if u == current else 0)
        return tuple(parts)


# --- from a unit to sentences ------------------------------------------------------------------


def _events(unit):
    if unit.token is not None:
        yield Event(unit.kind, visible(unit.symbols[0]), unit.reason, (unit.token,))
        return
    yield Event(unit.kind, visible(unit.raw()), unit.reason, ())
    if unit.whole is not None:
        text = visible(b"".join(unit.symbols))
        yield Event(
            "whole", text, "the whole word is a token: taken without merging", (unit.whole,)
        )
        return
    for k in range(len(unit.merges)):
        yield _merge_event(unit, k)
    for part in unit.parts():
        yield Event(part.how, visible(part.symbol), _RESULTS[part.how], part.ids)


_RESULTS = {
    "token": "no neighbour merges with it any more; it is a token",
    "bytes": "no token of its own: one byte token for each byte",
    "dropped": "no token of its own, nor for all of its bytes: those without one are dropped",
}


def _merge_event(unit, k):
    chosen, *others = unit.candidates(k)
    text = f"{visible(chosen.left)} + {visible(chosen.right)}"
    detail = f"{unit.priority(chosen)} at position {chosen.position}"
    if others:
        other = others[0]
        what = f"{visible(other.left)} + {visible(other.right)}"
        detail += (
            f"; comes before {len(others)} other{'s' if len(others) > 1 else ''}, "
            f"next {what} ({unit.priority(other)} at {other.position})"
        )
    return Event("merge", text, detail, ())


# --- from a text to units ----------------------------------------------------------------------


def explain(tokenizer, text, add_special=True, parse_special=False):
    """The Explanation of one text (bytes); `Tokenizer.explain` is the way to call this.

    Raises
    ------
    BadArgument
        For a text of more than `MAX_BYTES` bytes.
    """
    if len(text) > MAX_BYTES:
        raise BadArgument(
            f"This text has {len(text)} bytes; explanations go up to {MAX_BYTES}. Explain a "
            f"part of it."
        )
    vocabulary, units = tokenizer.vocabulary, []
    units += _added(vocabulary, tokenizer.ends(add_special, "bos"), "begin", 0)
    for fragment, raw, prefix in tokenizer.fragments(text, parse_special):
        if fragment.token is not None:
            units.append(_special(vocabulary, fragment))
        elif vocabulary.kind == "bpe":
            units += _words(tokenizer.encoder, raw, fragment.start)
        else:
            units.append(_stretch(tokenizer.encoder, raw, fragment, prefix))
    units += _added(vocabulary, tokenizer.ends(add_special, "eos"), "end", len(text))
    return Explanation(text, tuple(units))


def _added(vocabulary, tokens, kind, at):
    reason = f"the vocabulary puts its {kind} token here"
    return [
        Unit(vocabulary, at, at, kind, reason, (vocabulary.tokens[t],), token=t) for t in tokens
    ]


def _special(vocabulary, fragment):
    user = vocabulary.bits[fragment.token] & USER_DEFINED
    kind = "a user-defined token: always cut out" if user else "a special token: cut out"
    reason = f"{kind} before anything else, bytes {fragment.start} to {fragment.end}"
    text = vocabulary.tokens[fragment.token]
    return Unit(
        vocabulary, fragment.start, fragment.end, "special", reason, (text,), token=fragment.token
    )


def _words(encoder, raw, start):
    ends, n, at = code_point_ends(raw), 0, start
    for word, branch in encoder.splitter.branches(decode_lenient(raw)):
        n += len(word)
        symbols, log = encoder.symbols(word), []
        encoder.encode_word(word, log)
        end = start + ends[n - 1]
        yield Unit(
            encoder.vocabulary,
            at,
            end,
            "word",
            branch,
            tuple(symbols),
            merges=tuple(log),
            whole=encoder.whole_word(symbols),
            encoder=encoder,
        )
        at = end


def _stretch(encoder, raw, fragment, prefix):
    escaped, log = encoder.escape(raw, prefix), []
    encoder.encode_piece(escaped, log)
    reason = "spaces become ▁" + (", one is put in front" if prefix else "")
    return Unit(
        encoder.vocabulary,
        fragment.start,
        fragment.end,
        "stretch",
        reason,
        tuple(characters(escaped)),
        merges=tuple(log),
        encoder=encoder,
    )
