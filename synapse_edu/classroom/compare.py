"""An answer against the right value: what exactly is wrong with it, if anything."""

import numbers
from dataclasses import dataclass

import numpy as np

RIGHT, NOT_ATTEMPTED, RAISED = "right", "not attempted", "raised"
WRONG_TYPE, WRONG_SHAPE, WRONG_DTYPE = "wrong type", "wrong shape", "wrong dtype"
WRONG_NUMBERS, MUTATED, PATCHED = "wrong numbers", "mutated input", "patched"
GUESSABLE = 1000  # a whole answer up to here follows from a wrong one and a rounded factor


@dataclass(frozen=True)
class Verdict:
    """What a comparison found; `message` is what the learner reads.

    `cause` is the mistake that gives the same wrong answer, if one is known.
    """

    status: str
    message: str
    cause: str = ""

    def __bool__(self):
        return self.status == RIGHT


def is_untouched(answer):
    """Whether the place for the answer still holds what the exercise put there."""
    return answer is None or answer is Ellipsis or answer is NotImplemented


def compare(answer, right, rtol=1e-6, atol=0.0, dtype=None):
    """Compare one value.

    Parameters
    ----------
    answer : anything
        Untrusted: nothing here calls its methods of comparison.
    right : number, str, bool, tuple, list or ndarray
        A tuple or list of strings is compared string by string; any other as an array.
    rtol, atol : float
        Allowed difference of numbers; whole numbers must be exact.
    dtype : NumPy dtype, optional
        Asked of an array answer; otherwise any float or integer type will do.

    Returns
    -------
    Verdict
    """
    if is_untouched(answer):
        return Verdict(NOT_ATTEMPTED, "Not attempted yet: put your answer in place of the dots.")
    if isinstance(right, bool | np.bool_):
        return _same(answer, bool(right), (bool, np.bool_), "True or False")
    if isinstance(right, str):
        return _same(answer, right, (str,), "a string")
    if isinstance(right, numbers.Number):
        return _number(answer, right, rtol, atol)
    if isinstance(right, list | tuple) and right and isinstance(right[0], str):
        return _strings(answer, right)
    return _array(answer, np.asarray(right), rtol, atol, dtype)


def _same(answer, right, types, what):
    if type(answer) not in types:
        return Verdict(WRONG_TYPE, f"The answer is {what}; yours is a {type(answer).__name__}.")
    if types[0](answer) == right:
        return Verdict(RIGHT, "Right.")
    return Verdict(WRONG_NUMBERS, f"{answer!r} is not the answer.")


def _strings(answer, right):
    if type(answer) not in (list, tuple) or any(type(item) is not str for item in answer):
        return Verdict(WRONG_TYPE, "The answer is a list of strings.")
    if list(answer) == list(right):
        return Verdict(RIGHT, "Right.")
    if len(answer) != len(right):
        return Verdict(WRONG_NUMBERS, f"{answer!r} is not the answer: it has another length.")
    first = next(i for i, (a, b) in enumerate(zip(answer, right, strict=True)) if a != b)
    return Verdict(WRONG_NUMBERS, f"First wrong at index {first}: {answer[first]!r}.")


def _number(answer, right, rtol, atol):
    if isinstance(answer, np.ndarray) and answer.size == 1 and answer.dtype.kind in "iuf":
        answer = answer.reshape(-1)[0]
    if type(answer) not in (int, float) and not isinstance(answer, np.integer | np.floating):
        return Verdict(WRONG_TYPE, f"The answer is a number; yours is a {type(answer).__name__}.")
    mine, target = float(answer), float(right)
    if isinstance(right, numbers.Integral):
        # Beyond 2⁵³ two whole numbers can be the same float, so those are not compared.
        exact = int(answer) if isinstance(answer, int | np.integer) else mine
        same = exact == int(right)
    else:
        same = mine == target or (
            np.isfinite(target) and abs(mine - target) <= atol + rtol * abs(target)
        )
    if same:
        return Verdict(RIGHT, "Right.")
    guessable = isinstance(right, numbers.Integral) and abs(target) <= GUESSABLE
    return Verdict(
        WRONG_NUMBERS, f"{answer:,} is not the answer; {_how_far(mine, target, not guessable)}."
    )


def _how_far(mine, target, by_factor):
    """In words; without the factor where it would give a small whole number away."""
    if not np.isfinite(mine):
        return "it is not a finite number"
    if not by_factor or target == 0 or mine == 0 or (mine < 0) != (target < 0):
        return "it is too large" if mine > target else "it is too small"
    ratio = mine / target
    if 0.999 < ratio < 1.001:
        return "it is very close, but not exact"
    return (
        f"it is {ratio:.3g} times too large"
        if ratio > 1
        else f"it is {1 / ratio:.3g} times too small"
    )


def _array(answer, right, rtol, atol, dtype):
    if not isinstance(answer, np.ndarray | list | tuple):
        return Verdict(WRONG_TYPE, f"The answer is an array; yours is a {type(answer).__name__}.")
    try:
        mine = np.array(answer)  # a copy, of plain numbers
    except Exception as error:  # whatever hides in an answer
        return Verdict(WRONG_TYPE, f"The answer cannot be read as an array ({error}).")
    if mine.dtype.kind not in "biuf":
        return Verdict(WRONG_TYPE, f"The answer is an array of numbers, not of {mine.dtype}.")
    if mine.shape != right.shape:
        return Verdict(WRONG_SHAPE, f"The shape should be {right.shape}; yours is {mine.shape}.")
    if dtype is not None and mine.dtype != np.dtype(dtype):
        return Verdict(
            WRONG_DTYPE, f"The numbers should be {np.dtype(dtype)}; yours are {mine.dtype}."
        )
    a, b = mine.astype(np.float64).ravel(), right.astype(np.float64).ravel()  # (n,) each
    exact = right.dtype.kind in "biu"
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= (0.0 if exact else atol + rtol * np.abs(b))  # (n,)
    close &= np.isfinite(b)  # every number lies within a tolerance that is infinite
    good = close | (a == b) | (np.isnan(a) & np.isnan(b))  # (n,)
    if good.all():
        return Verdict(RIGHT, "Right.")
    first = int(np.argmin(good))
    index = tuple(int(i) for i in np.unravel_index(first, right.shape)) if right.ndim else ()
    where = f" first at index {index if len(index) != 1 else index[0]}" if right.ndim else ""
    return Verdict(
        WRONG_NUMBERS,
        f"{int((~good).sum())} of {good.size} numbers are wrong,{where}: yours is {a[first]:.6g}.",
    )
