"""A submission run in a process of its own, with limits; what comes back is JSON, never code."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LARGEST_RESULT = 256 * 1024**2
RESTARTS = 3
# What a child needs to start; nothing else of the teacher's environment reaches it.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "PYTHONPATH", "NUMBA_CPU_NAME")


@dataclass(frozen=True)
class Limits:
    """What one notebook may use: seconds for all of it and for one cell, MiB of memory."""

    seconds: int = 120
    cell_seconds: int = 20
    memory: int = 3072


def run(cells, class_seed, limits):
    """Run the cells of one submission.

    A cell that ends the process (an exit, a crash, a loop that cannot be interrupted) is left
    out the next time, so that it costs what it deserves and no more.

    Parameters
    ----------
    cells : list of dict
        As `worker.run` takes them.
    class_seed : int
    limits : Limits

    Returns
    -------
    lines : list of dict
        What the worker told.
    endings : list of str
        Sentences about how it ended before its time; empty if it did not.
    """
    skip, endings = [], []
    while True:
        job = {
            "cells": cells,
            "skip": skip,
            "class_seed": class_seed,
            "seconds": limits.seconds,
            "cell_seconds": limits.cell_seconds,
            "memory": limits.memory * 1024**2,
        }
        lines, code = _once(job, limits.seconds)
        if lines and lines[-1] == {"end": True}:
            return lines, endings
        reached = [line["at"] for line in lines if isinstance(line.get("at"), int)]
        endings.append(_ending(code, limits))
        if not reached or reached[-1] in skip or len(skip) == RESTARTS:
            return lines, endings
        skip.append(reached[-1])


def _once(job, seconds):
    """Run the worker once: what it told, and its exit code (None if it had to be ended)."""
    with tempfile.TemporaryDirectory(prefix="synapse-grade-", ignore_cleanup_errors=True) as place:
        place = Path(place)
        (place / "job.json").write_text(json.dumps(job), encoding="utf-8")
        (place / "home").mkdir()
        code = _start_and_wait(place, seconds + 5)
        return _lines(place / "result.jsonl"), code


def _start_and_wait(place, seconds):
    """Exit code of the worker, or None if it had to be ended."""
    command = [sys.executable, "-m", f"{__package__}.worker"]
    command += [str(place / "job.json"), str(place / "result.jsonl")]
    posix = os.name == "posix"
    child = subprocess.Popen(
        command,
        cwd=place / "home",
        env=_environment(place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=posix,
    )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(child, posix)


def _end(child, posix):
    """End the worker and, where it has a group of its own, whatever it started."""
    try:
        if posix:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except OSError:
        pass  # it is gone already
    child.wait()


def _environment(place):
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH")]))
    home = str(place / "home")
    return kept | {
        "PYTHONPATH": path,
        "HOME": home,
        "USERPROFILE": home,
        "IPYTHONDIR": home,
        "MPLCONFIGDIR": home,
        "TMPDIR": home,
        "SYNAPSE_PROGRESS": home,
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _lines(path):
    """What the worker wrote; a line that is cut short or no dict of ours is left out."""
    try:
        if path.stat().st_size > LARGEST_RESULT:
            return []
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(read, dict):
            found.append(read)
    return found


def _ending(code, limits):
    if code in (None, 124) or code == -getattr(signal, "SIGXCPU", 0):
        return f"It was stopped: it ran longer than {limits.seconds} seconds."
    if code == 137:
        return f"It was stopped: it used more than {limits.memory} MiB of memory."
    return "The process that ran it ended before its time."
