"""Progress, kept on this computer only: which checks were tried, and which are right.

Nothing personal is stored and nothing is sent.  Where the folder cannot be written, checking
works the same, a sentence says so once, and what was answered is remembered until Python ends.
"""

import json
import os
from pathlib import Path

from platformdirs import user_data_path

from ..atomic import replacing

_unsaved = {}  # path → what could not be written there


def path():
    """The file: in the folder SYNAPSE_PROGRESS, or else in the user's data folder."""
    given = os.environ.get("SYNAPSE_PROGRESS")
    folder = Path(given).expanduser() if given else user_data_path("synapse_edu", appauthor=False)
    return folder / "progress.json"


def load():
    """Name → {"status": …, "tries": …}; empty if there is none, or it cannot be read."""
    if path() in _unsaved:
        return dict(_unsaved[path()])
    try:
        found = json.loads(path().read_text(encoding="utf-8"))
        return {k: v for k, v in found.items() if _is_record(v)}
    except (OSError, ValueError, AttributeError):
        return {}


def _is_record(v):
    return (
        isinstance(v, dict) and isinstance(v.get("status"), str) and isinstance(v.get("tries"), int)
    )


def note(name, status):
    """Remember a try that could be judged; a right answer stays right."""
    if status in ("not attempted", "patched"):
        return
    kept = load()
    before = kept.get(name, {})
    if before.get("status") == "right":
        status = "right"
    kept[name] = {"status": status, "tries": before.get("tries", 0) + 1}
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            part.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        _unsaved.pop(target, None)
    except OSError as problem:  # a read-only computer: the check itself must not fail
        if target not in _unsaved:
            why = problem.strerror or type(problem).__name__
            print(
                f"Your progress cannot be kept in {target.parent} ({why}), so it is forgotten when "
                "this notebook ends. Set SYNAPSE_PROGRESS to a folder that you may write to."
            )
        _unsaved[target] = kept


class Table(dict):
    """Progress as a table."""

    def __repr__(self):
        if not self:
            return "Nothing has been answered yet."
        lines = [f"{'check':24} {'status':16} tries"]
        lines += [f"{k:24} {v['status']:16} {v['tries']}" for k, v in sorted(self.items())]
        right = sum(v["status"] == "right" for v in self.values())
        return "\n".join([*lines, f"{right} of {len(self)} right."])
