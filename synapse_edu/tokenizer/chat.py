"""Messages → ids, through the chat template of the model's file.

Three things can go wrong here, and each has its guard:

- *A message spells a control token.*  Only text that the template itself wrote may become one:
  see `typed`.  The template is rendered with the real messages and again with every character of
  them disguised; when both agree, the second tells who wrote what.  Where they disagree (the
  template changes a message's letters, say), only those characters are disguised without which
  no control token can be spelled.  Where even that changes the text, it is refused.
- *The template is hostile or broken.*  It runs in a sandbox with limits: see `sandbox`.
- *Two begin tokens.*  The ids start with exactly one, whether template, vocabulary or both add
  it, and with none in families that have none.
"""

import json
import re
from datetime import datetime
from typing import NamedTuple

import jinja2

from ..errors import BadArgument, TokenizerProblem
from .attributes import CONTROL, UNKNOWN
from .sandbox import LimitedEnvironment, measure
from .typed import StandIns

MAX_TEMPLATE = 500_000  # characters
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


class Rendered(NamedTuple):
    """A rendered chat: its text, and for each UTF-8 byte whether a message put it there."""

    text: str
    typed: bytes


def render(vocabulary, messages, template=None, tools=None, add_generation_prompt=True, **extra):
    """The chat as text.

    Parameters
    ----------
    vocabulary : Vocabulary
    messages : list of dict
        Each with a "role" (a plain word) and a "content"; other keys reach the template too.
    template : str, optional
        The name of one of the file's templates, or a template; None takes the file's usual one.
    tools : list of dict, optional
    add_generation_prompt : bool
        End with the marker after which the model answers.
    **extra
        More variables for the template; ``now`` (a datetime) is what `strftime_now` shows.

    Returns
    -------
    Rendered

    Raises
    ------
    BadArgument
        For messages of another form.
    TokenizerProblem
        Without a template, and for one that is wrong, refuses the messages, runs into a limit,
        or does something to a message that cannot be followed safely.
    """
    source = _source(vocabulary, template)
    _check(messages)
    values = {"messages": messages, "tools": tools, **extra}
    values["add_generation_prompt"] = bool(add_generation_prompt)
    plain = _run(vocabulary, source, values)
    typed = "".join(_texts(values))
    for only in (None, _needed(vocabulary)):
        marks = StandIns(typed, only)
        marked = _run(vocabulary, source, _disguise(values, marks))
        if marks.reveal(marked) == plain:
            return Rendered(plain, marks.mask(marked))
    raise TokenizerProblem(
        "The chat template changes the messages in a way in which its own text and theirs can no "
        "longer be told apart. Remove what looks like markup (such as '<|' or '[') from them."
    )


def _source(vocabulary, template):
    known = vocabulary.chat_templates
    if template is None and "" not in known:
        raise TokenizerProblem(
            "This file has no chat template (tokenizer.chat_template). Give one as `template`, "
            "or write the prompt yourself."
        )
    if template is not None and not isinstance(template, str):
        raise BadArgument(f"A template is text, or the name of one, not {template!r}.")
    source = known.get(template or "", template)
    if len(source) > MAX_TEMPLATE:
        raise TokenizerProblem(f"The chat template is longer than {MAX_TEMPLATE} characters.")
    return source


def _check(messages):
    if not isinstance(messages, (list, tuple)):
        raise BadArgument('Messages are a list like [{"role": "user", "content": "Hi"}].')
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadArgument('A message is a dict like {"role": "user", "content": "Hi"}.')
        if not _ROLE.fullmatch(message["role"]):
            raise BadArgument(
                f"The role {message['role'][:40]!r} is not a plain word like 'user'. Roles are "
                f"part of the markers, so nothing that a user typed belongs there."
            )


def _texts(value, depth=0):
    """Every text in the values, but for roles: what somebody may have typed."""
    if depth > 50:
        raise BadArgument("The messages are nested deeper than 50 levels.")
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "role":
                yield from _texts(item, depth + 1)
            if isinstance(key, str):
                yield key
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, depth + 1)


def _disguise(value, marks, top=True):
    """The same values with stand-ins; roles and keys stay, as the template asks for them."""
    if isinstance(value, str):
        return marks.hide(value)
    if isinstance(value, dict):
        return {
            _key(key, marks, top): item if key == "role" else _disguise(item, marks, False)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_disguise(item, marks, False) for item in value]
    return value


def _key(key, marks, top):
    """Keys that are plain words are names, which templates look up; others may be anything."""
    named = top or not isinstance(key, str) or _ROLE.fullmatch(key)
    return key if named else marks.hide(key)


def _needed(vocabulary):
    """A set of characters of which every control token's text holds one: usually '<' and '['."""
    chosen = set()
    for token in vocabulary.special:
        if vocabulary.bits[token] & (CONTROL | UNKNOWN):
            text = vocabulary.tokens[token].decode("utf-8", "replace")
            if chosen.isdisjoint(text):
                marks = [c for c in text if not (c.isalnum() or c.isspace())]
                chosen.add((marks or text)[0])
    return chosen


def _token_text(vocabulary, role):
    token = vocabulary.roles.get(role)
    return "" if token is None else vocabulary.tokens[token].decode("utf-8", "replace")


def _raise_exception(message):
    raise jinja2.TemplateError(str(message)[:500])


def _to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    indent = None if indent is None else min(int(indent), 16)
    return json.dumps(
        measure(value),
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _run(vocabulary, source, values):
    """Render once, and put every failure into plain words."""
    environment = LimitedEnvironment()
    environment.filters["tojson"] = _to_json
    values = dict(values)
    now = values.pop("now", None) or datetime.now()
    helpers = {
        "bos_token": _token_text(vocabulary, "bos"),
        "eos_token": _token_text(vocabulary, "eos"),
        "raise_exception": _raise_exception,
        "strftime_now": lambda form: now.strftime(str(form)[:200]),
    }
    try:
        return environment.from_string(source).render(helpers | values)
    except jinja2.TemplateSyntaxError as problem:
        why = f"line {problem.lineno} is not a valid template ({problem.message})"
    except jinja2.TemplateError as problem:
        why = problem.message or type(problem).__name__
    except RecursionError:
        why = "it is nested too deeply"
    except Exception as problem:  # whatever a stranger's template can provoke
        why = f"{type(problem).__name__}: {str(problem)[:200]}"
    raise TokenizerProblem(f"The chat template could not be rendered: {why}.")
