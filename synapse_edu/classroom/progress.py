"""Progress, kept on this computer only: which checks were tried, and which are right.

Nothing personal is stored and nothing is sent.  Where the folder cannot be written, checking
works the same and nothing is remembered.
"""

import json
import os
from pathlib import Path

from platformdirs import user_data_path

from ..atomic import replacing


def path():
    """The file: in the folder SYNAPSE_PROGRESS, or else in the user's data folder."""
    given = os.environ.get("SYNAPSE_PROGRESS")
    folder = Path(given).expanduser() if given else user_data_path("synapse_edu", appauthor=False)
    return folder / "progress.json"


def load():
    """Name → {"status": …, "tries": …}; empty if there is none, or it cannot be read."""
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
    try:
        target = path()
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            part.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
    except OSError:
        pass  # a read-only computer: the check itself must not fail


class Table(dict):
    """Progress as a table."""

    def __repr__(self):
        if not self:
            return "Nothing has been answered yet."
        lines = [f"{'check':24} {'status':16} tries"]
        lines += [f"{k:24} {v['status']:16} {v['tries']}" for k, v in sorted(self.items())]
        right = sum(v["status"] == "right" for v in self.values())
        return "\n".join([*lines, f"{right} of {len(self)} right."])
