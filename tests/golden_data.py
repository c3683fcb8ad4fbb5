"""Where the recorded arrays are, and how they are compared: by bits."""

import json
from pathlib import Path

import numpy as np

FORWARD = Path(__file__).parent / "golden" / "forward"
VARIANTS = json.loads((FORWARD / "manifest.json").read_text(encoding="utf-8"))


def arrays(name):
    """All arrays of one recording, read once."""
    with np.load(FORWARD / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def differing(got, want):
    """How many float32 differ in their bits; any NaN equals any NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype == np.float32 and got.shape == want.shape, (
        got.dtype,
        got.shape,
        want.shape,
    )
    bits = np.ascontiguousarray(got).view(np.uint32) != np.ascontiguousarray(want).view(np.uint32)
    return int((bits & ~(np.isnan(got) & np.isnan(want))).sum())
