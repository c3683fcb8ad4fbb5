"""A view made to work without a kernel: every state that its keys and controls can reach."""

import base64
import gzip
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

from ..views.frame import STATIC

KEYS = (
    "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End",
    "Shift+ArrowRight", "Shift+ArrowLeft",
)  # fmt: skip
PRESS = re.compile(r'data-press="([^"]*)"')
CHOICE = re.compile(r'data-set="([^"]*)"[^>]*data-value="([^"]*)"')
SELECT = re.compile(r'<select[^>]*data-set="([^"]*)"[^>]*>(.*?)</select>', re.S)
OPTION = re.compile(r'<option[^>]*value="([^"]*)"')
SLIDER = re.compile(r"<input[^>]*type=\"range\"[^>]*>")
DEFAULTS = {"min": 0, "max": 100, "step": 1}  # of a slider that leaves them out
ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')


@dataclass
class Recording:
    """States by number: their HTML, the values of their controls, and where each action leads."""

    html: list
    values: list
    moves: list

    def packed(self):
        """The recording as text for a ``<script>``: JSON, compressed, in base 64."""
        data = {"html": self.html, "values": self.values, "moves": self.moves}
        return base64.b64encode(gzip.compress(json.dumps(data).encode(), mtime=0)).decode()


def record(view, limit=2000):
    """Try every key and every control, from every state that these lead to.

    Parameters
    ----------
    view : View
    limit : int
        States at most; what would lead further does nothing.

    Returns
    -------
    Recording
    """
    start = view.state
    numbers, waiting = {start: 0}, [start]
    made = Recording([], [], [])
    for state in waiting:
        view.state = state
        view.later()
        made.html.append(view.html)
        made.values.append(view.values())
        moves = {}
        for name, after in following(view):
            if after not in numbers and len(numbers) < limit:
                numbers[after] = len(waiting)
                waiting.append(after)
            if after in numbers and after != state:
                moves[name] = numbers[after]
        made.moves.append(moves)
    view.state = start
    return made


def following(view):
    """(name of an action as the browser calls it, state after it) of everything a reader can do."""
    pressed = {html.unescape(key) for key in PRESS.findall(view.html)}
    for key in (*KEYS, *sorted(pressed - set(KEYS))):
        yield f"press {key}", view._move(key)
    for name, value in sorted(set(_choices(view.html))):
        yield f"set {name} {value}", view._choose(name, value)


def _choices(page):
    """(control, value) of every choice on a page, in the texts that a browser sends."""
    for name, value in CHOICE.findall(page):
        yield html.unescape(name), html.unescape(value)
    for name, options in SELECT.findall(page):
        for value in OPTION.findall(options):
            yield html.unescape(name), html.unescape(value)
    for slider in SLIDER.findall(page):
        found = dict(ATTRIBUTE.findall(slider))
        low, high, step = (float(found.get(k, d)) for k, d in DEFAULTS.items())
        if "data-set" in found and step > 0:
            for i in range(round((high - low) / step) + 1):
                yield found["data-set"], f"{round(low + i * step, 10):g}"


def embed(view, limit=2000):
    """The view as HTML for a page that loads ``views.js``; its static form where no script runs."""
    return (
        f'<div class="se-live" tabindex="0">{view.static()}'
        f'<script type="application/x-recording">{record(view, limit).packed()}</script></div>'
    )


def script():
    """``views.js``: the browser's half of every view, and the player of recordings, in one file.

    A page that was opened from the disk may load no module, so this is a plain script.
    """
    player = Path(__file__).with_name("replay.js")
    views = (STATIC / "view.js").read_text(encoding="utf-8")
    views = views.replace("export default { render };", "")
    return "(() => {\n" + views + player.read_text(encoding="utf-8") + "})();\n"
