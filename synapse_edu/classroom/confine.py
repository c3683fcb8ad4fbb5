"""What a submission's process may reach: its own folder to write in, Python and its libraries to
read, and nothing else.

Two walls.  On Linux the kernel itself refuses (Landlock, a network namespace), whatever language a
submission calls.  Everywhere an audit hook, which Python cannot remove again, refuses what plain
Python asks for: addresses, other programs, and writing outside of the folder.
"""

import ctypes
import os
import sys
from pathlib import Path

NEW_USER, NEW_NET = 0x10000000, 0x40000000  # of unshare(2)
NO_NEW_PRIVILEGES = 38  # of prctl(2)
# Landlock's rights over files, linux/landlock.h, by the version of its interface.
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
REACHED = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
STARTED = (
    "subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn",
    "os.spawn", "os.startfile", "pty.spawn", "os.kill", "os.killpg",
)  # fmt: skip
CHANGED = (
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate",
    "os.chmod", "os.chown", "os.utime",
)  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(folder, hidden=()):
    """Take from this process, for good, whatever a submission does not need.

    Parameters
    ----------
    folder : Path
        The only place that can be written to.
    hidden : sequence of Path
        What cannot even be read, though it lies among the libraries (Linux only).

    Returns
    -------
    bool
        Whether the kernel guards the files too.
    """
    libraries = sorted(_libraries())
    guarded = False
    if sys.platform == "linux":
        _quietly(lambda: ctypes.CDLL(None).unshare(NEW_USER | NEW_NET))
        guarded = bool(_quietly(lambda: _landlock(folder, libraries, hidden)))
    sys.addaudithook(_hook(os.path.realpath(folder)))
    return guarded


def _quietly(work):
    """What `work` returns, or None where the system has no such thing."""
    try:
        return work()
    except (OSError, AttributeError):
        return None


def _libraries():
    """Folders that Python, its packages, and the shared objects loaded so far are in."""
    package = Path(__file__).resolve().parents[1]
    data = [package.parent / "data", package.parent / "notebooks"]  # of a clone
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, package, *data]
    named += [path for path in sys.path if path and Path(path).resolve() != package.parent]
    named += ["/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys", "/dev"]
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            loaded = {line.split(maxsplit=5)[-1].strip() for line in maps}
        named += [
            os.path.dirname(path) for path in loaded if path.startswith("/") and ".so" in path
        ]
    except OSError:
        pass
    return {Path(path).resolve() for path in named if Path(path).exists()} - {Path("/")}


def parts(top, hidden):
    """`top`, or those of its parts that together hold all of it but `hidden`."""
    if top in hidden:
        return
    if not any(path.is_relative_to(top) for path in hidden):
        yield top
        return
    for child in sorted(top.iterdir()):
        if not child.is_symlink():
            yield from parts(child, hidden)


def _landlock(folder, libraries, hidden):
    """Let the kernel refuse all files but these; whether it does."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    everything = RIGHTS[max(known for known in RIGHTS if known <= version)]
    # Since version 4 no TCP, since 6 no signals to processes outside.
    asked = (ctypes.c_uint64 * 3)(everything, 3 * (version >= 4), 3 * (version >= 6))
    size = 8 * (1 + (version >= 4) + (version >= 6))
    ruleset = call(CREATE_RULESET, asked, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False

    def allow(path, rights):
        if not path.is_dir():
            rights &= EXECUTE | WRITE | READ
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        call(ADD_RULE, ruleset, 1, rule, 0)
        os.close(place)

    hidden = [Path(path).resolve() for path in hidden]
    for top in libraries:
        allow(top, LIST)
        for part in parts(top, hidden):
            _quietly(lambda part=part: allow(part, EXECUTE | READ | LIST))
    allow(Path("/dev"), WRITE | READ | LIST)
    allow(Path(folder), everything)
    call_prctl = ctypes.CDLL(None).prctl
    call_prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done = call(RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done


def _hook(folder):
    """The audit hook."""
    inside = folder + os.sep
    free = {folder, os.path.realpath(os.devnull), os.devnull}

    def outside(path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False  # an open file
        real = os.path.realpath(os.fsdecode(path))
        return real not in free and not real.startswith(inside)

    def hook(event, details):
        if event in REACHED:
            # Windows builds its socket pairs over the loopback address.
            if not (sys.platform == "win32" and "127.0.0.1" in str(details)):
                raise PermissionError("A submission is graded without network.")
        elif event in STARTED:
            raise PermissionError("A submission is graded without other programs.")
        elif event == "open":
            path, mode, flags = details
            writes = any(sign in mode for sign in "wax+") if isinstance(mode, str) else False
            if (writes or (flags or 0) & WRITING) and outside(path):
                raise PermissionError("A submission writes in its own folder only.")
        elif event in CHANGED and any(
            outside(path) for path in details[: 1 + (event == "os.rename")]
        ):
            raise PermissionError("A submission writes in its own folder only.")

    return hook
