"""This machine in a few words, to stand beside whatever was measured on it."""

import os
import platform
import subprocess
from pathlib import Path


def describe():
    """Name of the processor, cores, memory and system.

    Returns
    -------
    dict
        cpu : str; cores : int, that this process may use; memory : bytes, or None where it is not
        known; system : str.
    """
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def sentence(about):
    """A description as one line."""
    memory = f", {about['memory'] / 2**30:.0f} GiB" if about["memory"] else ""
    plural = "" if about["cores"] == 1 else "s"
    return f"{about['cpu']}, {about['cores']} core{plural}{memory}, {about['system']}"


def _cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0 and found.stdout.strip():
            return found.stdout.strip()
    return platform.processor() or platform.machine()


def _memory():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
