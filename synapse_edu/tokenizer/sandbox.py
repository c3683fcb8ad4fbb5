"""Chat templates come with model files from strangers, so they run with limits.

Jinja2's ImmutableSandboxedEnvironment keeps a template from Python's internals and from changing
what it is given.  It does not keep one from running for hours or from filling the memory, so here
every loop and macro body counts its steps, and every place where a value can grow (operators,
calls, filters, literals, output) measures it, before it grows where one step could be too much.
"""

import re
import time
from functools import wraps

import jinja2
import jinja2.visitor
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SIZE = 1_000_000  # characters of a text, or items and characters of a nested value
MAX_STEPS = 200_000  # loop rounds and macro calls
MAX_SECONDS = 5.0
MAX_DIGITS = 4_000  # bits of a whole number

_FILTERS = (
    "abs attr capitalize count d default dictsort e escape first float groupby int items join "
    "last length list lower map max min reject rejectattr replace reverse round safe select "
    "selectattr sort string striptags title trim truncate unique upper wordcount"
).split()
_PADDING = re.compile(r"\d{5,}|\*")  # a width in a format string that is no width


class TemplateLimit(jinja2.TemplateError):
    """A template that takes too long or grows too large."""


def measure(value):
    """`value`, if writing it out in full stays within `MAX_SIZE`; else TemplateLimit.

    Shared parts count as often as they occur: a list of a list of a list, each twice in the
    next, is small in memory and endless on paper.
    """
    size, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, int) and item.bit_length() > MAX_DIGITS:
            raise TemplateLimit("a number grew too large")
        elif isinstance(item, dict):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            pending += item
        size += 1
        if size + len(pending) > MAX_SIZE:
            raise TemplateLimit(f"a value grew beyond {MAX_SIZE} characters")
    return value


def _times(left, right):
    for text, n in ((left, right), (right, left)):
        if isinstance(text, (str, list, tuple)) and isinstance(n, int) and n > 0:
            unit = len(text) or 1
            if n > MAX_SIZE // unit:
                raise TemplateLimit(f"a value grew beyond {MAX_SIZE} characters")
    return left * right


def _power(left, right):
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * max(right, 0) > MAX_DIGITS:
            raise TemplateLimit("a number grew too large")
    return left**right


def _modulo(left, right):
    if isinstance(left, str) and _PADDING.search(left):
        raise TemplateLimit("a format asks for an enormous width")
    return left % right


def replace(text, old, new, count=-1):
    """str.replace, measured before it is done; `count` as in Jinja's filter, None for all."""
    count = -1 if count is None else count
    text, old, new = str(text) if not isinstance(text, str) else text, str(old), str(new)
    found = min(text.count(old), count) if count >= 0 else text.count(old)
    if len(text) + found * len(new) > MAX_SIZE:
        raise TemplateLimit(f"a text grew beyond {MAX_SIZE} characters")
    return text.replace(old, new, count)


def join(separator, parts):
    """str.join, measured before it is done."""
    parts = [part if isinstance(part, str) else str(measure(part)) for part in parts]
    if sum(map(len, parts)) + len(separator) * len(parts) > MAX_SIZE:
        raise TemplateLimit(f"a text grew beyond {MAX_SIZE} characters")
    return separator.join(parts)


def _join_filter(value, d="", attribute=None):
    if attribute is not None:
        value = [part[attribute] for part in value]
    return join(str(d), value)


def _measured(function):
    @wraps(function)
    def filtered(*args, **kwargs):
        return measure(function(*args, **kwargs))

    return filtered


class GenerationBlock(Extension):
    """``{% generation %}…{% endgeneration %}`` marks what training learns; here it is its body."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates end: see the module's text.  Use one for each rendering."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self):
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationBlock],
        )
        filters = {name: _measured(self.filters[name]) for name in _FILTERS}
        self.filters = filters | {"join": _join_filter, "replace": replace}
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        self.binop_table = self.binop_table | {"*": _times, "**": _power, "%": _modulo}
        self.steps, self.until = 0, time.monotonic() + MAX_SECONDS

    def tick(self):
        """Count one round; called by every loop and macro body."""
        self.steps += 1
        if self.steps > MAX_STEPS or time.monotonic() > self.until:
            raise TemplateLimit(f"it ran for more than {MAX_STEPS} rounds or {MAX_SECONDS:g} s")
        return ""

    def concat(self, parts):
        """What `~`, output and captured blocks join with."""
        return join("", parts)

    def tilde(self, *parts):
        return join("", parts)

    measure = staticmethod(measure)

    def call_binop(self, context, operator, left, right):
        if operator == "+" and all(isinstance(side, (str, list, tuple)) for side in (left, right)):
            if len(left) + len(right) > MAX_SIZE:
                raise TemplateLimit(f"a value grew beyond {MAX_SIZE} characters")
        return measure(super().call_binop(context, operator, left, right))

    def call(__self, __context, __obj, *args, **kwargs):  # noqa: B902, N805
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str):
            if name == "join":
                return join(owner, *args)
            if name == "replace":
                return replace(owner, *args, **kwargs)
            if any(isinstance(a, int) and a > MAX_SIZE for a in (*args, *kwargs.values())):
                raise TemplateLimit("a text method is asked for an enormous width")
        if name in ("format", "format_map") and _PADDING.search(str(owner or "")):
            raise TemplateLimit("a format asks for an enormous width")
        return measure(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value):
        if getattr(value, "__name__", "") in ("format", "format_map"):
            if isinstance(value.__self__, str) and _format_is_wide(value.__self__):
                raise TemplateLimit("a format asks for an enormous or a computed width")
        return super().wrap_str_format(value)

    def _parse(self, source, name, filename):
        tree = super()._parse(source, name, filename)
        for body in list(tree.find_all((nodes.For, nodes.Macro, nodes.CallBlock))):
            body.body.insert(0, nodes.Output([_call("tick")]).set_lineno(body.lineno))
        _Watch().visit(tree)
        return tree.set_environment(self)


def _format_is_wide(text):
    return bool(_PADDING.search(text)) or bool(re.search(r"\{[^{}]*:[^{}]*\{", text))


def _call(name, arguments=()):
    return nodes.Call(nodes.EnvironmentAttribute(name), list(arguments), [], None, None)


class _Watch(jinja2.visitor.NodeTransformer):
    """Sends `~` and literals with something inside through the environment's measuring."""

    def visit_Concat(self, node):
        self.generic_visit(node)
        return _call("tilde", node.nodes).set_lineno(node.lineno)

    def visit_List(self, node):
        self.generic_visit(node)
        return _call("measure", [node]).set_lineno(node.lineno) if node.items else node

    visit_Dict = visit_List

    def visit_Tuple(self, node):
        if node.ctx != "load":
            return node
        return self.visit_List(node)
