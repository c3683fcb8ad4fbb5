"""The roofline: how fast a machine can run a computation, from two measured numbers.

A computation of m multiply-accumulates that reads b bytes takes at least b / bandwidth seconds
for the bytes and m / throughput seconds for the arithmetic.  Whichever is longer is the limit.
The intensity m / b at which the two meet is the ridge: left of it a computation is bound by
memory, right of it by arithmetic (Williams, Waterman & Patterson, 2009).
"""

import os
import threading
import time
from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from .speed import product_seconds


@dataclass(frozen=True)
class Machine:
    """What a machine can do at best.

    Attributes
    ----------
    name : str
    bandwidth : float
        Bytes read from memory a second.
    macs : float
        Multiply-accumulates a second.
    source : str
        Where the two numbers come from.
    """

    name: str
    bandwidth: float
    macs: float
    source: str

    @property
    def ridge(self):
        """Multiply-accumulates a byte at which memory and arithmetic limits meet."""
        return self.macs / self.bandwidth

    def attainable(self, intensity):
        """Multiply-accumulates a second at `intensity` (MACs a byte): the roofline itself."""
        return np.minimum(self.bandwidth * np.asarray(intensity, float), self.macs)

    def seconds(self, phase):
        """Least time for a `cost.Phase`: its weights and its cache are read from memory."""
        return max(self._memory_seconds(phase), phase.macs / self.macs)

    def _memory_seconds(self, phase):
        return (phase.weight_bytes + phase.cache_bytes) / self.bandwidth

    def tokens_per_second(self, phase):
        return phase.n_tokens / self.seconds(phase)

    def bound(self, phase):
        """``"memory"`` or ``"arithmetic"``: which of the two limits the phase."""
        longer = self._memory_seconds(phase) > phase.macs / self.macs
        return "memory" if longer else "arithmetic"


# Peak figures as published; a real program reaches 60 to 90 % of them.  A multiply-accumulate is
# two of the operations that data sheets count.
MACHINES = (
    Machine(
        "laptop, two channels of DDR5-5600",
        2 * 8 * 5600e6,
        8 * 3.0e9 * 32,
        "2 channels × 8 bytes × 5.6 GT/s; 8 cores × 3 GHz × 32 int8 MACs a cycle (AVX2)",
    ),
    Machine(
        "Raspberry Pi 5",
        4 * 4267e6,
        4 * 2.4e9 * 32,
        "32-bit LPDDR4X-4267; 4 Cortex-A76 × 2.4 GHz × 32 int8 MACs a cycle (dot product)",
    ),
    Machine(
        "NVIDIA H100 SXM", 3.35e12, 989.4e12 / 2, "data sheet: 3.35 TB/s, 989.4 TFLOP/s dense BF16"
    ),
    Machine(
        "NVIDIA A100 80 GB", 2.039e12, 312e12 / 2, "data sheet: 2,039 GB/s, 312 TFLOP/s dense BF16"
    ),
)
PRESETS = {machine.name: machine for machine in MACHINES}


def read_bandwidth(n_threads=None, n_bytes=256 * 1024**2, repeats=5):
    """Bytes a second that `n_threads` threads read from memory together; the best of `repeats`.

    Each thread sums its own share of one array that is larger than the caches.
    """
    n_threads = n_threads or os.cpu_count() or 1
    if n_threads < 1 or repeats < 1:
        raise BadArgument("read_bandwidth: n_threads and repeats must be at least 1.")
    data = np.ones(n_bytes // 8, np.int64)  # (n_bytes / 8,)
    shares = np.array_split(data, n_threads)
    best = 0.0
    for _ in range(repeats):
        threads = [threading.Thread(target=share.sum) for share in shares]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = max(best, data.nbytes / (time.perf_counter() - start))
    return best


def _best_rate(work, macs, seconds):
    """MACs a second of `work`, the best call within `seconds` (at least three calls)."""
    work()  # warm: compile, allocate
    best, calls, start = 0.0, 0, time.perf_counter()
    while calls < 3 or time.perf_counter() - start < seconds:
        t = time.perf_counter()
        work()
        best = max(best, macs / (time.perf_counter() - t))
        calls += 1
    return best


def float32_macs(n=512, seconds=0.5):
    """Float32 multiply-accumulates a second: an n × n matrix product through NumPy's BLAS."""
    a = np.ones((n, n), np.float32)  # (n, n)
    out = np.empty((n, n), np.float32)  # (n, n)
    return _best_rate(lambda: np.matmul(a, a, out=out), n**3, seconds)


def int8_macs(format="Q4_1", n_out=1024, n_in=1024, n_tokens=64, repeats=9):
    """Multiply-accumulates a second of this package's own product of a quantized matrix with
    `n_tokens` activation rows, unpacking included: what prefill can reach here, on one thread."""
    ((_, seconds),) = product_seconds(format, [n_tokens], n_out, n_in, repeats)
    return n_out * n_in * n_tokens / seconds


def measure(n_threads=None, macs=None):
    """This machine as a `Machine`: its read bandwidth, and int8 MACs a second.

    Parameters
    ----------
    n_threads : int, optional
        All cores by default.
    macs : float, optional
        Throughput measured elsewhere; else `int8_macs` times the threads.
    """
    n_threads = n_threads or os.cpu_count() or 1
    macs = macs or int8_macs() * n_threads
    plural = "" if n_threads == 1 else "s"
    return Machine(
        f"this machine, {n_threads} thread{plural}",
        read_bandwidth(n_threads),
        macs,
        "measured just now",
    )


@dataclass(frozen=True)
class Placed:
    """One phase beneath a machine's roof: what the limits allow, and what was measured.

    Attributes
    ----------
    name : str
    intensity : float
        Multiply-accumulates a byte read, cache included.
    bound : {"memory", "arithmetic"}
    predicted : float
        Tokens a second that the nearer limit allows.
    measured : float or None
    """

    name: str
    intensity: float
    bound: str
    predicted: float
    measured: float | None

    @property
    def share(self):
        """Measured over predicted; None without a measurement."""
        return None if self.measured is None else self.measured / self.predicted


def place(machine, phases, measured=None):
    """Each phase of a dict by name → `Placed`, in the same order.

    `measured` gives tokens a second for some of the names.
    """
    measured = measured or {}
    return [
        Placed(
            name,
            phase.macs / (phase.weight_bytes + phase.cache_bytes),
            machine.bound(phase),
            float(machine.tokens_per_second(phase)),
            measured.get(name),
        )
        for name, phase in phases.items()
    ]


def scaling(work, thread_counts, repeats=3):
    """Seconds of ``work(n_threads)`` for each count, and the speed-up over the first.

    Returns
    -------
    list of (n_threads, seconds, speed_up)
        The best of `repeats` calls, after one that is not counted.
    """
    rows = []
    for n in thread_counts:
        work(n)
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            work(n)
            seconds.append(time.perf_counter() - start)
        best = min(seconds)
        rows.append((n, best, (rows[0][1] if rows else best) / best))
    return rows


def saturation(rows, gain=1.1):
    """The number of threads after which one more step of `scaling` gained less than `gain`.

    Returns
    -------
    int or None
        None if every step still helped.

    Examples
    --------
    >>> saturation([(1, 8.0, 1.0), (2, 4.1, 1.95), (4, 3.9, 2.05)])
    2
    """
    for (n, before, _), (_, after, _) in zip(rows, rows[1:], strict=False):
        if before < gain * after:
            return n
    return None
