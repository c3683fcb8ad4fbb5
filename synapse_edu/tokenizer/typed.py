"""Text that somebody typed, told apart from a template's own text after rendering.

A chat template glues its markers (`<|im_start|>`) and the messages into one text.  If a message
spells a marker, the result cannot say any more who wrote it.  So characters of the messages are
replaced by stand-ins from Unicode's private planes before rendering.  A stand-in goes through
the template as one character, wherever it ends up, and tells its origin there.

A template may look at a message (``content.split('</think>')``, ``content | trim``).  `Typed` is
a str that puts the same stand-ins into what it is compared with, so that such questions get the
same answers.

>>> marks = StandIns("</s>hi", only=set("<"))
>>> hidden = marks.hide("</s>hi")
>>> hidden.startswith("</s>"), marks.reveal("<s>" + hidden), marks.mask("<s>" + hidden)
(True, '<s></s>hi', b'\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00')
"""

_FIRST = 0xF0000


class StandIns:
    """A stand-in for each character of `text` that is in `only`, or for all but white space.

    Parameters
    ----------
    text : str
        All that was typed.
    only : set of str or None
    """

    def __init__(self, text, only=None):
        used = set(text)
        chosen = {c for c in used if not c.isspace()} if only is None else used & only
        self._hide = {ord(c): chr(_FIRST + i) for i, c in enumerate(sorted(chosen))}
        self._reveal = {ord(stand_in): chr(code) for code, stand_in in self._hide.items()}

    def hide(self, text):
        """The text with its stand-ins, as a Typed."""
        typed = Typed(text.translate(self._hide))
        typed.marks = self
        return typed

    def reveal(self, text):
        """The text as it was typed."""
        return text.translate(self._reveal)

    def mask(self, text):
        """For each UTF-8 byte of ``reveal(text)``: 1 if a stand-in stood there, else 0."""
        pieces = []
        for character in text:
            original = self._reveal.get(ord(character))
            flag = b"\0" if original is None else b"\1"
            pieces.append(flag * len((original or character).encode("utf-8", "replace")))
        return b"".join(pieces)


class Typed(str):
    """A str with stand-ins that answers questions as the text that was typed would."""

    __slots__ = ("marks",)
    __hash__ = str.__hash__


def _asking(name):
    plain = getattr(str, name)

    def method(self, *args):
        return _keep(self, plain(self, *(_hidden(self, arg) for arg in args)))

    method.__name__ = name
    return method


def _hidden(typed, argument):
    if isinstance(argument, str) and not isinstance(argument, Typed):
        return argument.translate(typed.marks._hide)
    if isinstance(argument, tuple):
        return tuple(_hidden(typed, part) for part in argument)
    return argument


def _keep(typed, result):
    """Texts that come out of a Typed are Typed too."""
    if isinstance(result, str):
        kept = Typed(result)
        kept.marks = typed.marks
        return kept
    if isinstance(result, (list, tuple)):
        return type(result)(_keep(typed, part) for part in result)
    return result


for _name in (
    "split rsplit splitlines partition rpartition strip lstrip rstrip startswith endswith find "
    "rfind index rindex count replace removeprefix removesuffix __contains__ __eq__ __ne__ "
    "__getitem__"
).split():
    setattr(Typed, _name, _asking(_name))
