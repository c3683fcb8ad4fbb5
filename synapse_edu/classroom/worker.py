"""Runs one submission in a process of its own, and hands back what its answers did.

    python -m synapse_edu.classroom.worker JOB RESULT

JOB is a JSON file: the cells in order, and for each task the name of its answer and the inputs to
try it on.  No right answer is in this process.  RESULT gets one line of JSON a task, as soon as it
is known, so that what came before a crash counts.  The limits are set before anything of the
learner's is read.
"""

import json
import os
import sys
import threading
import time


def limit(memory, seconds):
    """No more memory or time than given; what the system has for it is used.

    Where there are no resource limits (Windows), or where they do not hold (macOS has none on
    address space), a thread watches and ends the process.
    """
    try:
        import resource
    except ImportError:
        resource = None
    if resource is not None:
        for kind, most in (
            ("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds + 5),
            ("RLIMIT_FSIZE", 256 * 1024**2), ("RLIMIT_CORE", 0),
        ):  # fmt: skip
            try:
                resource.setrlimit(getattr(resource, kind), (most, most))
            except (AttributeError, OSError, ValueError):
                pass
    threading.Thread(target=_watch, args=(resource, memory, seconds), daemon=True).start()


def _watch(resource, memory, seconds):
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if resource and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > memory:
            os._exit(137)
        time.sleep(0.2)
    os._exit(124)


def seal(class_seed):
    """Take the right answers out of this process; what a question needs, its numbers, stays.

    Answers are judged by the process that started this one, so that here every check passes.
    """
    import gc

    from synapse_edu.classroom import compare, guard, tasks

    class Sealed(tasks.Task):
        def verdict(self, *_):
            return compare.Verdict(compare.RIGHT, "Judged elsewhere.")

    tasks.load()
    for name, task in list(tasks.TASKS.items()):
        numbers = task.numbers(class_seed)
        tasks.TASKS[name] = Sealed(
            name, None, hints=task.hints, question=task.question, given=numbers
        )
    rooms = [f"synapse_edu.classroom.{room}" for room in ("exercises", "checks")]
    for name in [n for n in sys.modules if n.startswith(tuple(rooms))]:
        del sys.modules[name]
    for room in rooms:
        vars(sys.modules["synapse_edu.classroom"]).pop(room.rpartition(".")[2], None)
    tasks.load = lambda: None
    guard._KEPT.clear()
    gc.collect()


def shell():
    """An IPython shell, so that magics in a cell work; without history, and with no terminal."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    settings = Config()
    settings.HistoryManager.enabled = False
    settings.HistoryManager.hist_file = ":memory:"
    settings.InteractiveShell.colors = "nocolor"
    return InteractiveShell.instance(config=settings)


class TooLong(BaseException):
    """One cell took longer than a cell may."""


def timed(work, seconds):
    """Run `work`, and stop it after `seconds` where the system can interrupt (not on Windows)."""
    import signal

    if not hasattr(signal, "setitimer"):
        return work()

    def stop(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run(job, tell):
    """Run the cells of `job`; `tell` takes a dict for each task and for each cell that failed."""
    import synapse_edu.classroom as classroom

    classroom.use_class_seed(job["class_seed"])
    ip = shell()
    for number, cell in enumerate(job["cells"]):
        tell({"at": number})
        if number in job["skip"]:  # it ended an earlier process
            for task in cell.get("tasks", ()):
                tell({"task": task["name"], "ended": True})
        elif "tasks" in cell:
            for task in cell["tasks"]:
                tell({"task": task["name"], **_told(task, ip.user_ns, job["cell_seconds"])})
        else:
            problem = _run_cell(ip, cell["source"], job["cell_seconds"])
            if problem is not None:
                tell({"cell": cell.get("number", number), "raised": problem})
            elif "plain" in cell:
                tell({"plain": cell["plain"]})


def _run_cell(ip, source, seconds):
    """Run one cell; None, or the name of what it raised."""
    from synapse_edu.classroom.outcome import exception_name

    try:
        done = timed(lambda: ip.run_cell(source), seconds)
        problem = done.error_before_exec or done.error_in_exec
    except (TooLong, SystemExit, Exception) as error:
        problem = error
    if problem is None:
        return None
    too_long = isinstance(problem, TooLong | KeyboardInterrupt)
    return "too long" if too_long else exception_name(problem)


def _told(task, names, seconds):
    """What the answer to one task holds or does, as JSON."""
    from synapse_edu.classroom.plain import unpack

    cases = None if task["cases"] is None else unpack(task["cases"])
    try:
        return timed(_attempt(names, task["answer"], cases), seconds)
    except TooLong:
        return {"too_long": True}
    except (SystemExit, KeyboardInterrupt, Exception):
        return {"failed": True}


def _attempt(names, answer, cases):
    """A function that fetches `answer`, a name in the learner's namespace, and tries it."""
    from synapse_edu.classroom.outcome import collect
    from synapse_edu.classroom.plain import pack, plain

    def work():
        if answer not in names:
            return {"missing": True}
        found = names[answer]
        if cases is None or not callable(found):
            return {"value": pack(plain(found))}
        return {"outcomes": [outcome.pack() for outcome in collect(found, cases)]}

    return work


def main(job_path, result_path):
    """Read the job, set the limits, run."""
    from synapse_edu.classroom import editions
    from synapse_edu.classroom.confine import confine

    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    os.remove(job_path)
    seal(job["class_seed"])
    os.environ["MPLBACKEND"] = "agg"
    # What cells print is nobody's business here, and may be endless.
    silence = open(os.devnull, "w", encoding="utf-8")
    sys.stdout = sys.stderr = silence
    with open(result_path, "w", encoding="utf-8") as result:
        rooms = [editions.PACKAGE / "classroom" / room for room in ("exercises", "checks")]
        confine(os.getcwd(), [*rooms, editions.folder()])
        limit(job["memory"], job["seconds"])

        def tell(line):
            result.write(json.dumps(line) + "\n")
            result.flush()

        run(job, tell)
        tell({"end": True})
    os._exit(0)  # threads or exit functions that a submission left behind do not matter


if __name__ == "__main__":
    main(*sys.argv[1:3])
