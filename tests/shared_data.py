"""Test data that may stand beside the repository and belongs to others, so that it is not in it.

Where it is there, the tests that need it run; `needs_shared` says what covers the same ground
where it is not.
"""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
CASES, TOKENS = SHARED / "cases", SHARED / "tokens"


def needs_shared(otherwise):
    """Mark a test that needs the data beside the repository.

    Parameters
    ----------
    otherwise : str
        Which tests of this repository's own data cover the same behaviour.
    """
    return pytest.mark.skipif(
        not SHARED.is_dir(),
        reason=f"Data of others, not in this repository; without it: {otherwise}.",
    )
