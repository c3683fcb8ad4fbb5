"""The divergence microscope: two passes over the same tokens, compared step by step.

The two sides may differ in their Numerics, in how the prompt was cut into batches, or in one
value that is moved by one unit in the last place.  For every step the comparison gives the
largest difference, the relative RMS difference and the distance in units in the last place (ulp);
at the end it sets the error of the logits against the margin between the two best tokens, which
answers the question that matters: would the token flip?
"""

from dataclasses import dataclass
from dataclasses import replace as _replace

import numpy as np

from ..errors import BadArgument
from ..numerics import CHOICES, Numerics
from .patching import walk


@dataclass(frozen=True)
class Nudge:
    """Move one value by `ulps` units in the last place, where a step is computed.

    Attributes
    ----------
    name, layer : str, int or None
        The step, as in `model/steps.py`.
    position : int
        Position of the token in the sequence.
    index : int or None
        Index into the flattened value; None moves every number.
    ulps : int
    """

    name: str
    layer: int | None
    position: int
    index: int | None = 0
    ulps: int = 1

    @property
    def place(self):
        return "" if self.index is None else f"[{self.index}]"

    def __call__(self, step):
        """What to put in the step's place: a copy with the one element moved, or None."""
        if (step.name, step.layer, step.position) != (self.name, self.layer, self.position):
            return None
        moved = np.array(step.value, np.float32)  # the step's shape
        if self.index is not None and not 0 <= self.index < moved.size:
            raise BadArgument(
                f"Nudge: index {self.index} is outside {self.name}, which has {moved.size} values."
            )
        towards = np.float32(np.inf if self.ulps > 0 else -np.inf)
        where = slice(None) if self.index is None else self.index
        for _ in range(abs(self.ulps)):
            moved.flat[where] = np.nextafter(moved.flat[where], towards)
        return moved


@dataclass(frozen=True)
class Gap:
    """How far one step of side b is from side a.

    `ulp` is the largest distance counted in float32 steps; `relative_rms` is the RMS of the
    difference over the RMS of side a; `index` is where the largest difference sits.
    """

    name: str
    layer: int | None
    llama_cpp_name: str
    max_abs: float
    relative_rms: float
    ulp: int
    n_different: int
    n_values: int
    index: int


def ulp_distance(a, b):
    """Float32 steps between two arrays, elementwise; 0 means the same bits (or ±0).

    Examples
    --------
    >>> int(ulp_distance(np.float32(1), np.nextafter(np.float32(1), np.float32(2))))
    1
    """

    def ordered(x):
        bits = np.array(x, np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)  # same shape; monotonic in x

    return np.abs(ordered(a) - ordered(b))  # same shape


def gap(name, layer, llama_cpp_name, a, b):
    """Compare two arrays of one step; −∞ in the same place counts as equal."""
    a = np.asarray(a, np.float32).ravel()  # (n,)
    b = np.asarray(b, np.float32).ravel()  # (n,)
    if a.shape != b.shape:
        raise BadArgument(f"{name}: {a.size} values on one side, {b.size} on the other.")
    same = a.view(np.uint32) == b.view(np.uint32)  # (n,)
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, a.astype(np.float64) - b)  # (n,)
    scale = np.sqrt(np.mean(np.where(np.isfinite(a), a, 0.0).astype(np.float64) ** 2))
    rms = np.sqrt(np.mean(difference**2))
    return Gap(
        name,
        layer,
        llama_cpp_name,
        float(np.abs(difference).max()),
        float(rms / scale) if scale else float(rms > 0),
        int(ulp_distance(a, b).max()),
        int((~same).sum()),
        a.size,
        int(np.abs(difference).argmax()),
    )


@dataclass(frozen=True)
class Divergence:
    """The result of `diverge`: the gaps in order of computation, and both sides' logits."""

    a: str
    b: str
    gaps: tuple
    logits_a: np.ndarray
    logits_b: np.ndarray

    def first_over(self, threshold=0.0, measure="max_abs"):
        """The first step whose `measure` exceeds `threshold`, or None."""
        for item in self.gaps:
            if getattr(item, measure) > threshold:
                return item
        return None

    @property
    def n_different(self):
        """Values with other bits, over all steps."""
        return sum(item.n_different for item in self.gaps)

    @property
    def margin(self):
        """Side a's best logit minus its second best."""
        second, best = np.sort(self.logits_a)[-2:]
        return float(best - second)

    @property
    def logit_error(self):
        """Largest difference between the two sides' logits."""
        return float(np.abs(self.logits_a - self.logits_b).max())

    @property
    def flips(self):
        """Whether the two sides' best tokens differ."""
        return int(self.logits_a.argmax()) != int(self.logits_b.argmax())

    @property
    def rank_of_best(self):
        """Place of side a's best token in side b's order: 0 is the first."""
        return int((self.logits_b > self.logits_b[self.logits_a.argmax()]).sum())

    def table(self, threshold=0.0):
        """The gaps as text, the first over the threshold marked."""
        first = self.first_over(threshold)
        lines = [f"{'step':26}{'max abs':>11}{'rel. RMS':>11}{'ulp':>12}{'differ':>16}"]
        for g in self.gaps:
            mark = "  ← first" if g is first else ""
            lines.append(
                f"{label(g):26}{g.max_abs:11.3g}{g.relative_rms:11.3g}{g.ulp:12}"
                f"{f'{g.n_different} of {g.n_values}':>16}{mark}"
            )
        lines.append(self.verdict())
        return "\n".join(lines)

    def verdict(self):
        """One sentence: would the token flip?"""
        answer = "The token flips" if self.flips else "The token stays the same"
        return (
            f"{answer}: the logits differ by at most {self.logit_error:.3g}, "
            f"and the best token leads by {self.margin:.3g}."
        )

    def __repr__(self):
        return self.table()


def label(item):
    return item.name if item.layer is None else f"{item.name} {item.layer}"


def run(model, ids, numerics=None, nudge=None, chunks=None):
    """One pass over `ids`; the last token's steps and its logits.

    Parameters
    ----------
    model : Llama
    ids : list of int
    numerics : Numerics or str, optional
        The model's own by default.
    nudge : Nudge, optional
    chunks : list of int, optional
        Sizes of the batches in which all ids but the last are evaluated; one token at a time by
        default.  The last token is always walked on its own, so that its steps can be seen.

    Returns
    -------
    steps : list of Step
    logits : ndarray, shape (n_vocab,)
    """
    if not len(ids):
        raise BadArgument("There is nothing to compare: the prompt is empty.")
    if numerics is not None:
        model = model.with_numerics(numerics)
    cache = model.new_cache(n_ctx=len(ids))
    head = list(ids[:-1])
    sizes = [1] * len(head) if chunks is None else list(chunks)
    if sum(sizes) != len(head):
        raise BadArgument(
            f"The chunks hold {sum(sizes)} ids, but {len(head)} come before the last."
        )
    start = 0
    for size in sizes:
        if size == 1 and nudge is not None:
            walk(model, head[start], cache, nudge)
        elif size:
            model.prefill(head[start : start + size], cache)
        start += size
    steps = walk(model, ids[-1], cache, nudge)
    if nudge is not None:  # show the moved value where it was put
        moved = [nudge(step) for step in steps]
        steps = [
            step if value is None else _replace(step, value=value)
            for step, value in zip(steps, moved, strict=True)
        ]
    return steps, np.array(steps[-1].value, np.float32)  # (n_vocab,)


def diverge(model, ids, a=None, b=None, nudge=None, chunks=None):
    """Compare two passes over `ids`, at the last token.

    Parameters
    ----------
    model : Llama
    ids : list of int
    a, b : Numerics or str, optional
        Numerics of the two sides; the model's own by default.
    nudge : Nudge, optional
        A one-value change on side b.
    chunks : list of int, optional
        Batches in which side b evaluates all ids but the last.

    Returns
    -------
    Divergence
    """
    a = Numerics.named(a) if a is not None else model.numerics
    b = Numerics.named(b) if b is not None else model.numerics
    steps_a, logits_a = run(model, ids, a)
    steps_b, logits_b = run(model, ids, b, nudge, chunks)
    gaps = tuple(
        gap(x.name, x.layer, x.llama_cpp_name, x.value, y.value)
        for x, y in zip(steps_a, steps_b, strict=True)
    )
    what = b.name + ("" if nudge is None else f", {label(nudge)}{nudge.place} moved")
    what += "" if chunks is None else f", prompt in batches of {list(chunks)}"
    return Divergence(a.name, what, gaps, logits_a, logits_b)


def switches(model, ids, base, target):
    """Each switch in which two Numerics differ, flipped alone and then one after another.

    Returns
    -------
    list of (str, Divergence)
        ``"order alone"`` for each switch, then ``"order + fma + …"`` up to the whole of `target`.
    """
    base, target = Numerics.named(base), Numerics.named(target)
    changed = [s for s in CHOICES if getattr(base, s) != getattr(target, s)]
    # cache is flipped with q and the probabilities as they are, so that each switch stands alone
    kept = {s: getattr(base, s) for s in ("q", "probabilities")}
    results = []
    for switch in changed:
        alone = base.replace(**(kept | {switch: getattr(target, switch)}))
        results.append((f"{switch} alone", diverge(model, ids, base, alone)))
    together = dict(kept)
    for i, switch in enumerate(changed):
        together[switch] = getattr(target, switch)
        if i:
            name = " + ".join(changed[: i + 1])
            results.append((name, diverge(model, ids, base, base.replace(**together))))
    return results
