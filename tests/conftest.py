"""Fixtures that many tests share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy is imported, and for the kernels of the chapters: see lab.run_jupyter.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Started in the background, a shell's child ignores Ctrl-C; tests that send it need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy computer is no failure: time is measured in benchmarks, not in tests.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if os.environ.get("NUMBA_JIT_COVERAGE"):
    import jit_coverage

    jit_coverage.count()

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def golden():
    """Folder of the recorded forward passes: tiny models and what llama.cpp computes on them."""
    return ROOT / "tests" / "golden" / "forward"


@pytest.fixture(scope="session")
def smollm2_path():
    """The SmolLM2 file, fetched once.  Offline, its tests are skipped; in CI that is a failure."""
    from synapse_edu.checkpoint import catalogue
    from synapse_edu.errors import DownloadProblem

    try:
        return catalogue.get("smollm2", quiet=True)
    except DownloadProblem as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs SmolLM2: {error}")
        pytest.skip(f"SmolLM2 is not on this computer and could not be fetched: {error}")


@pytest.fixture(scope="session")
def book_site(tmp_path_factory):
    """The book, built once for all tests, with every warning an error.

    SYNAPSE_BOOK_SITE names a site that is built already, for quick work on these tests.
    """
    from synapse_edu.book.build import build

    if built := os.environ.get("SYNAPSE_BOOK_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("book") / "site"
    build(folder)
    return folder
