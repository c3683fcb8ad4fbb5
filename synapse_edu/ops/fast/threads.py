"""Python threads that run one compiled function together, each with its own number.

Numba's own thread pools start in tens of microseconds, or end the process when two Python threads
or a fork meet them.  These threads are plain: they wait in a queue, run compiled code without the
GIL, and meet inside it (`barrier`).
"""

import os
import threading
import weakref
from queue import SimpleQueue

from ...errors import BadArgument


def available():
    """Processors that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(n_threads, otherwise):
    """`n_threads` as an int; `otherwise` for None.

    Raises
    ------
    BadArgument
        Unless it is a whole number from 1 to 256.
    """
    if n_threads is None:
        return otherwise
    whole = not isinstance(n_threads, bool) and hasattr(n_threads, "__index__")
    if not whole or not 1 <= n_threads <= 256:
        raise BadArgument(f"n_threads must be a whole number from 1 to 256, not {n_threads!r}.")
    return int(n_threads)


class _Job:
    """One call, to be run by every thread of a team."""

    def __init__(self, function, argument, n_threads):
        self.function, self.argument = function, argument
        self.left, self.lock, self.done = n_threads, threading.Lock(), threading.Event()
        self.problem = None

    def finish(self):
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.done.set()


def _work(queue, number):
    last = None
    while (job := queue.get()) is not None:
        if job is last:
            continue  # handed out twice, see `Team.run`
        last = job
        try:
            job.function(job.argument, number)
        except BaseException as problem:
            job.problem = problem
        job.finish()
        job = None


def _stop(queues):
    for queue in queues:
        queue.put(None)


class Team:
    """`n_threads` threads for one model: one call at a time, from whatever Python thread.

    With one thread the caller's own is used.  After a fork the child makes threads of its own.
    """

    def __init__(self, n_threads):
        self.n_threads = n_threads
        self._reset()

    def _reset(self):
        self._process, self.lock, self._queues = os.getpid(), threading.RLock(), []

    def alone(self):
        """The lock for ``with``: one call at a time.

        The lock itself enters and leaves the block, in C, so that Ctrl-C finds no line of Python
        between at which it would be kept for ever.
        """
        if self._process != os.getpid():  # a forked child has no threads, and perhaps a held lock
            self._reset()
        return self.lock

    def run(self, function, argument):
        """``function(argument, number)`` on every thread; returns when all have come back.

        Call it inside ``with team.alone():``.  The threads wait for each other, so a call is begun
        by all or by none: an interruption is put off until it is over.
        """
        if self.n_threads == 1:
            function(argument, 0)
            return
        if not self._queues:
            self._start()
        job, interruption = _Job(function, argument, self.n_threads), None
        while True:
            try:
                for queue in self._queues:
                    queue.put(job)
                job.done.wait()
                break
            except KeyboardInterrupt as problem:
                interruption = problem  # hand out what was not handed out yet, and wait again
        if interruption or job.problem:
            raise interruption or job.problem

    def _start(self):
        queues = [SimpleQueue() for _ in range(self.n_threads)]
        for number, queue in enumerate(queues):
            name = f"synapse_edu-{number}"
            threading.Thread(target=_work, args=(queue, number), name=name, daemon=True).start()
        self._queues = queues
        weakref.finalize(self, _stop, queues)
