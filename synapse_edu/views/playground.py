"""The tokenizer playground: text as chips, the replay of merges, vocabularies side by side."""

from dataclasses import dataclass, replace

from ..errors import BadArgument, SynapseError
from .controls import select, slider
from .frame import View, details, page
from .text import number, safe, visible

MOST = 4  # vocabularies side by side
CHIPS = 400  # tokens drawn at once
COPIED = 5000  # ids that the button copies
LONGEST = 20_000  # bytes that are replayed; longer texts are only counted
KEYS = (
    "Left and right go through the merges, Home and End to the first and the last, up and down "
    "choose the vocabulary whose merges are shown."
)


@dataclass(frozen=True)
class PlaygroundState:
    """What the playground shows: a text, how special tokens are read, a moment of the replay."""

    text: str
    parse_special: bool = False
    chosen: int = 0
    step: int | None = None  # None: after the last merge


@dataclass(frozen=True)
class Split:
    """One vocabulary's answer: (id, bytes) of each token, and the moments of its replay."""

    name: str
    tokens: list
    moments: object
    problem: str = ""


def split(name, tokenizer, state):
    """Tokenize `state.text` with one vocabulary; a refusal becomes a sentence."""
    try:
        ids = tokenizer.encode(state.text, add_special=False, parse_special=state.parse_special)
        tokens = [(i, tokenizer.piece(i, special=True)) for i in ids]
        moments = None
        if len(state.text.encode("utf-8", "replace")) <= LONGEST:
            moments = tokenizer.explain(
                state.text, add_special=False, parse_special=state.parse_special
            ).replay()
        return Split(name, tokens, moments)
    except SynapseError as problem:
        return Split(name, [], None, str(problem))


def render(splits, state, live=True):
    """The playground as HTML.

    Parameters
    ----------
    splits : list of Split
        One a vocabulary, at most four.
    state : PlaygroundState
    live : bool
    """
    here = splits[state.chosen]
    label = f"{len(state.text)} characters as tokens of {', '.join(s.name for s in splits)}"
    parts = {
        "controls": _controls(splits, state),
        "text": f'<p><span class="se-soft">Text:</span> {safe(_cut(visible(state.text)))}</p>',
        "stage": "".join(_row(s, state, i == state.chosen) for i, s in enumerate(splits)),
        "status": safe(reading(here, state)),
        "replay": _replay(here, state, live),
        "table": details("Counts as a table", _table(splits, state)),
    }
    return page("playground", label, parts, KEYS, live)


def reading(here, state):
    """The chosen vocabulary, and the moment of its replay, in words."""
    if here.problem:
        return f"{here.name}: {here.problem}"
    n = len(here.tokens)
    n_bytes = len(state.text.encode("utf-8", "replace"))
    each = f", {number(n_bytes / n, 3)} bytes a token" if n else ""
    said = f"{here.name}: {n} token{'' if n == 1 else 's'} for {n_bytes} bytes{each}"
    if here.moments is None:
        return said
    now = at(here, state)
    return f"{said}. Merge {now} of {len(here.moments) - 1}: {here.moments[now].caption}"


def at(here, state):
    """The moment of the replay that is shown: 0 … last."""
    last = len(here.moments) - 1
    return last if state.step is None else min(state.step, last)


def _cut(text, limit=2000):
    return text if len(text) <= limit else text[:limit] + f" … and {len(text) - limit} more"


def _controls(splits, state):
    special = [("no", "as typed"), ("yes", "as tokens")]
    names = [(i, s.name) for i, s in enumerate(splits)]
    return (
        '<label>Text <input type="text" data-set="text" size="60" autocomplete="off" '
        'spellcheck="false"></label>'
        + select("Special tokens", "parse_special", special, special[state.parse_special][0])
        + select("Merges of", "chosen", names, state.chosen)
    )


def _row(s, state, chosen):
    """One vocabulary: its name, how many tokens, a button that copies the ids, and the chips."""
    mark = " (merges shown)" if chosen else ""
    if s.problem:
        return f"<h4>{safe(s.name)}{mark}</h4><p>{safe(s.problem)}</p>"
    copy = ""
    if len(s.tokens) <= COPIED:
        ids = ", ".join(str(i) for i, _ in s.tokens)
        copy = f'<button type="button" data-copy="[{ids}]">copy ids</button>'
    # the spaces keep chips and ids apart where a page drops the style
    chips = " ".join(_chip(i, raw) for i, raw in s.tokens[:CHIPS])
    more = f"<p>and {len(s.tokens) - CHIPS} more tokens</p>" if len(s.tokens) > CHIPS else ""
    count = f"{len(s.tokens)} token{'' if len(s.tokens) == 1 else 's'}"
    heading = f"<h4>{safe(s.name)}: {count}{mark} {copy}</h4>"
    return f'{heading}<div class="se-chips" dir="ltr">{chips}</div>{more}'


def _chip(i, raw):
    what = f"id {i}, bytes {raw.hex(' ')}" if raw else f"id {i}, no bytes"
    return (
        f'<span class="se-chip" title="{what}"><span class="se-tok">{safe(visible(raw))}</span> '
        f'<span class="se-soft">{i}</span></span>'
    )


def _replay(here, state, live):
    if here.moments is None:
        why = "" if here.problem else "This text is too long to replay; its tokens are above."
        return f'<p class="se-soft">{why}</p>'
    now, last = at(here, state), len(here.moments) - 1
    moment = here.moments[now]
    parts = " ".join(
        f'<span class="se-chip"><span class="se-tok">{safe(visible(part.raw))}</span></span>'
        for part in moment.parts[:CHIPS]
    )
    choice = slider("Merge", "step", 0, last, now) + " " if live else ""
    return (
        f"<h4>Merges of {safe(here.name)}</h4>{choice}<b>{now} of {last}</b> "
        f'<div class="se-chips" dir="ltr">{parts}</div><p>{safe(moment.caption)}</p>'
    )


def _table(splits, state):
    n_bytes = len(state.text.encode("utf-8", "replace"))
    rows = []
    for s in splits:
        n = len(s.tokens)
        each = number(n_bytes / n, 3) if n else "–"
        ids = _cut(" ".join(str(i) for i, _ in s.tokens), 300)
        rows.append(
            f'<tr><th scope="row">{safe(s.name)}</th><td>{n}</td><td>{each}</td>'
            f'<td class="se-text">{safe(s.problem or ids)}</td></tr>'
        )
    head = "<tr><th>vocabulary</th><th>tokens</th><th>bytes a token</th><th>ids</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


class TokenizerPlayground(View):
    """Type a text and see its tokens, merge by merge, in up to four vocabularies.

    Parameters
    ----------
    tokenizers : Tokenizer, or dict of str → Tokenizer
    text : str
    parse_special : bool
        Whether text that spells a special token becomes that token.
    """

    kind = "playground"

    def __init__(self, tokenizers, text="Once upon a time", parse_special=False):
        if not isinstance(tokenizers, dict):
            tokenizers = {"vocabulary": tokenizers}
        if not 1 <= len(tokenizers) <= MOST:
            raise BadArgument(f"Give 1 to {MOST} tokenizers, not {len(tokenizers)}.")
        self.tokenizers, self._made = dict(tokenizers), (None, None)
        super().__init__(PlaygroundState(str(text), bool(parse_special)))

    def splits(self, state):
        """Each vocabulary's answer; kept until the text changes."""
        key = (state.text, state.parse_special)
        if self._made[0] != key:
            self._made = (key, [split(n, t, state) for n, t in self.tokenizers.items()])
        return self._made[1]

    def _render(self, state, live):
        return render(self.splits(state), state, live)

    def _move(self, key):
        s, n = self.state, len(self.tokenizers)
        here = self.splits(s)[s.chosen]
        if key in ("ArrowUp", "ArrowDown"):
            chosen = min(max(s.chosen + (1 if key == "ArrowDown" else -1), 0), n - 1)
            return replace(s, chosen=chosen, step=None)
        if here.moments is None:
            return s
        now, last = at(here, s), len(here.moments) - 1
        steps = {
            "ArrowLeft": max(now - 1, 0),
            "ArrowRight": min(now + 1, last),
            "Home": 0,
            "End": last,
        }
        return replace(s, step=steps.get(key, s.step))

    def _choose(self, name, value):
        if name == "text":
            return replace(self.state, text=str(value), step=None)
        if name == "parse_special":
            return replace(self.state, parse_special=value == "yes", step=None)
        if name == "chosen" and 0 <= int(value) < len(self.tokenizers):
            return replace(self.state, chosen=int(value), step=None)
        if name == "step":
            return replace(self.state, step=max(0, int(value)))
        raise BadArgument(f"The playground has no control {name!r} with the value {value!r}.")

    def values(self):
        s = self.state
        here = self.splits(s)[s.chosen]
        step = at(here, s) if here.moments is not None else 0
        return {
            "text": s.text,
            "parse_special": "yes" if s.parse_special else "no",
            "chosen": str(s.chosen),
            "step": str(step),
        }

    def __repr__(self):
        return (
            f"TokenizerPlayground({', '.join(self.tokenizers)}; {len(self.state.text)} characters)"
        )
