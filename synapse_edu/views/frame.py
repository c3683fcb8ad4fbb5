"""What every view shares: its page, its state, its keys, and what it leaves behind (nothing).

A view is a plain object.  It becomes a widget only when a notebook displays it, and the widget
holds nothing but the rendered HTML; the browser's half (``static/view.js``) shows that and sends
back keys and choices.  Where no kernel runs, the same HTML is stored beside the widget.
"""

from functools import cache
from pathlib import Path

import anywidget
import traitlets

from .text import safe

STATIC = Path(__file__).with_name("static")
_live = {}  # cell → list of (run, view)


@cache
def stylesheet():
    """The stylesheet of all views, as text."""
    return (STATIC / "views.css").read_text(encoding="utf-8")


def page(kind, label, parts, keys="", live=True):
    """One view's HTML from its parts.

    Parameters
    ----------
    kind, label : str
        The kind of view, for CSS and tests; its name for a screen reader.
    parts : dict of str → str
        HTML by part.  ``controls`` is left out where nothing can be chosen; ``stage`` takes the
        focus and the keys; ``status`` is read out when it changes.
    keys : str
        Plain words: which keys do what.
    live : bool
        False: without controls, focus and keys, for a reader without a kernel.
    """
    # Jupyter sets text between dollar signs as a formula; a token may be a dollar sign.
    classes = f"se-view se-{kind} mathjax_ignore tex2jax_ignore"
    html = [f'<div class="{classes}" role="group" aria-label="{safe(label)}">']
    for name, content in parts.items():
        if name == "controls":
            if live:
                html.append(f'<div class="se-controls" data-part="controls">{content}</div>')
        elif name == "stage":
            focus = ' tabindex="0" role=' + ('"application"' if live else '"group"')
            name = f"{label}. {keys}" if live and keys else label
            html.append(
                f'<div class="se-stage" data-part="stage"{focus} aria-label="{safe(name)}">'
                f"{content}</div>"
            )
        elif name == "status":
            said = ' role="status" aria-live="polite"' if live else ""
            html.append(f'<p class="se-status" data-part="status"{said}>{content}</p>')
        else:
            html.append(f'<div data-part="{name}">{content}</div>')
    if live and keys:
        html.append(f'<p class="se-soft">{safe(keys)}</p>')
    if live:
        html.append('<div data-part="error" role="alert" class="se-error"></div>')
    html.append("</div>")
    return "".join(html)


def details(summary, table):
    """The table behind a picture, folded."""
    return f"<details><summary>{safe(summary)}</summary>{table}</details>"


class Frame(anywidget.AnyWidget):
    """The widget of any view: HTML to show, and the values of its controls."""

    _esm = STATIC / "view.js"
    _css = STATIC / "views.css"
    html = traitlets.Unicode().tag(sync=True)
    values = traitlets.Dict().tag(sync=True)


class View:
    """A picture of a computation that can be stepped through.

    A subclass gives ``kind``, ``_state`` (a frozen dataclass) and three methods: ``_move(key)``
    and ``_choose(name, value)`` return a new state, ``_render(state, live)`` returns HTML.
    """

    kind = "view"

    def __init__(self, state):
        self._state = state
        self._widget = None
        self.error = None
        self.html = self._render(state, live=True)

    @property
    def state(self):
        """What is being looked at; assign a changed copy to look at something else."""
        return self._state

    @state.setter
    def state(self, state):
        self._show(lambda: state)
        if self.error:
            raise self.error

    def press(self, key):
        """What a key does: ``"ArrowLeft"``, ``"Home"``, ``"PageDown"``, …"""
        self._show(lambda: self._move(key))

    def choose(self, name, value):
        """What a control does: its name, and its new value as the browser gives it."""
        self._show(lambda: self._choose(name, value))

    def later(self):
        """Compute what was left out to show a step at once; the browser asks for it."""
        self._show(self._later)

    def _later(self):
        return self._state

    def values(self):
        """The values of the controls by name, for the browser."""
        return {}

    def _show(self, next_state):
        """Go to another state.  An error is shown in the view, and the state stays as it was."""
        try:
            state = next_state()
            html = self._render(state, live=True)
            self._state, self.html, self.error = state, html, None
        except Exception as problem:
            self.error = problem
        if self._widget is not None:
            with self._widget.hold_sync():
                self._widget.html = self._page_with_error()
                self._widget.values = self.values()

    def _page_with_error(self):
        if self.error is None:
            return self.html
        place = 'class="se-error">'
        message = f"{type(self.error).__name__}: {self.error}"
        advice = "\nThe view shows what it showed before; any key or control goes on."
        return self.html.replace(place, place + safe(message + advice))

    def static(self):
        """The view as it is now, as HTML that needs no kernel, no script and no network."""
        return f"<style>{stylesheet()}</style>{self._render(self._state, live=False)}"

    @property
    def widget(self):
        """The ipywidget, made on first use; for layouts that put several views together."""
        if self._widget is None:
            self._widget = Frame(html=self._page_with_error(), values=self.values())
            self._widget.on_msg(self._receive)
            _keep(self)
        return self._widget

    def _receive(self, _, content, buffers=None):
        if "later" in content:
            self.later()
        elif "press" in content:
            self.press(str(content["press"]))
        elif "set" in content:
            self.choose(str(content["set"]), content.get("value"))

    def close(self):
        """Take the widget away, in the kernel and in the browser.  Displaying makes a new one."""
        widget, self._widget = self._widget, None
        if widget is not None:
            layout = widget.layout
            widget.close()
            layout.close()

    def _repr_mimebundle_(self, include=None, exclude=None):
        made = self.widget._repr_mimebundle_()
        data = dict(made[0] if isinstance(made, tuple) else made or {})
        data["text/plain"] = repr(self)
        data["text/html"] = self.static()
        return data


def _keep(view):
    """Close the views that earlier runs of the same notebook cell made.

    The kernel's registry of widgets holds every widget until it is closed, so a cell that is run
    fifty times would otherwise leave fifty.  Outside a notebook one widget lives at a time.
    """
    cell, run = _running_cell()
    kept = []
    for when, other in _live.get(cell, []):
        if when == run and run is not None:
            kept.append((when, other))
        else:
            other.close()
    _live[cell] = [*kept, (run, view)]


def _running_cell():
    """The notebook cell that is running and this run of it; (None, None) outside a notebook.

    A front end that does not name its cells is understood by the cell's text.
    """
    try:
        from IPython import get_ipython

        parent = get_ipython().get_parent()
        cell = parent["metadata"].get("cellId") or parent["content"]["code"]
        return cell, parent["header"]["msg_id"]
    except (AttributeError, KeyError, TypeError, ImportError):
        return None, None
