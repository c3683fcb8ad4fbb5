"""Lines that Numba compiles, counted as reached: coverage.py sees only what Python itself runs.

With ``NUMBA_JIT_COVERAGE=1`` Numba reports every line that it turns into machine code.  Its own
link to coverage.py does not fit the newer releases of that, so the lines are handed over here.
Code that is already in the cache is not compiled, hence `NUMBA_CACHE_DIR` has to be a new folder.
"""

from coverage import Coverage
from numba.misc import coverage_support


class Compiled(coverage_support.NotifyLocBase):
    """Takes the lines of one compilation."""

    def __init__(self, collector):
        self.collector = collector

    def notify(self, loc):
        place = self.collector.should_trace(loc.filename, None)
        if place.trace:
            self.collector.data.setdefault(place.source_filename, set()).add(loc.line)

    def close(self):
        pass


def _notifier():
    running = Coverage.current()
    return None if running is None else Compiled(running._collector)


def count():
    """From now on, count compiled lines."""
    coverage_support._the_registry[:] = [_notifier]
