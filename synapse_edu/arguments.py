"""What several modules ask of an argument."""

import numpy as np


def is_whole(x):
    """Whether `x` is a whole number: a Python or NumPy integer, and no truth value.

    Examples
    --------
    >>> is_whole(3), is_whole(np.int64(3)), is_whole(True), is_whole(3.0)
    (True, True, False, False)
    """
    return isinstance(x, int | np.integer) and not isinstance(x, bool)
