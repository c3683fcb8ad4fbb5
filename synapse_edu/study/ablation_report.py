"""What the ablations say: means with intervals, and differences seed by seed.

Three runs are few.  A mean of them is shown with its 95 % interval by Student's t, which for three
is 4.303 · s / √3 on either side: wide, and honest about it.  Arms are compared seed by seed,
because runs with the same seed see the same text and begin with the same numbers; so the interval
of the *differences* is often narrower than the two intervals of the means would suggest.  Only if
it leaves out zero is one arm called better.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument, did_you_mean

# Student's t: 97.5 % quantile by degrees of freedom
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def interval(values):
    """Mean of some runs, and half the width of its 95 % interval.

    Parameters
    ----------
    values : sequence of float
        From two runs on; for more than ten, the factor of ten is taken, which is a little wide.

    Returns
    -------
    mean, half : float
        `half` is infinite for a single run, which says nothing about others.
    """
    values = np.asarray(values, float)
    n = len(values)
    if n < 2:
        return float(values.mean()), float("inf")
    factor = T95[min(n - 2, len(T95) - 1)]
    return float(values.mean()), float(factor * values.std(ddof=1) / np.sqrt(n))


@dataclass(frozen=True)
class Row:
    """One arm of an experiment.

    Attributes
    ----------
    arm : str
    runs : list of dict
    mean, half : float
        Of the measure, over the seeds; NaN if a run broke down.
    difference, difference_half : float
        From the reference, seed by seed; NaN if a run of either broke down.
    """

    arm: str
    runs: list
    mean: float
    half: float
    difference: float
    difference_half: float

    @property
    def n_params(self):
        return self.runs[0]["n_params"]

    @property
    def n_broke(self):
        """Runs that broke down."""
        return sum(run["broke_at"] is not None for run in self.runs)

    @property
    def verdict(self):
        """``"better"`` or ``"worse"`` than the reference, or ``"undecided"``."""
        if self.n_broke:
            return "broke down"
        if not abs(self.difference) > self.difference_half:
            return "undecided"
        return "worse" if self.difference > 0 else "better"


def rows(results, name, measure="loss"):
    """The arms of one experiment, the reference first.

    Parameters
    ----------
    results : dict
        As `ablation.ablate` gives it.
    name : str
        Of the experiment.
    measure : str or function
        A run's field, or what to make of a run; less is better.

    Returns
    -------
    list of Row
    """
    experiment = _experiment(results, name)
    reference, arms = experiment["reference"], experiment["arms"]
    value = measure if callable(measure) else lambda run: run[measure]

    def values(arm):
        found = [value(results["runs"][key]) for key in arms[arm]]
        return np.array([np.nan if x is None else x for x in found], float)  # (seeds,)

    base, table = values(reference), []
    for arm in sorted(arms, key=lambda arm: arm != reference):
        mine = values(arm)
        gap = (0.0, 0.0) if arm == reference else interval(mine - base)
        runs = [results["runs"][key] for key in arms[arm]]
        table.append(Row(arm, runs, *interval(mine), *gap))
    return table


def _experiment(results, name):
    known = results["experiments"]
    if name not in known:
        raise BadArgument(
            f"No experiment is called {name!r}.{did_you_mean(name, known)} "
            f"There is: {', '.join(known)}."
        )
    return known[name]


def table(results, name, measure="loss"):
    """One experiment as text: each arm's parameters, mean, interval, difference and verdict."""
    experiment = _experiment(results, name)
    lines = [
        experiment["question"],
        f"{'':12}{'parameters':>11}{'nats a token':>17}{'difference':>19}",
    ]
    for row in rows(results, name, measure):
        if row.n_broke:
            what = f"  broke down in {row.n_broke} of {len(row.runs)} runs"
        else:
            what = f"{row.mean:9.3f} ± {row.half:.3f}"
            if row.arm != experiment["reference"]:
                what += f"   {row.difference:+7.3f} ± {row.difference_half:.3f}  {row.verdict}"
        lines.append(f"{row.arm:12}{row.n_params:>11,}  {what}")
    return "\n".join(lines)


def by_layer(results, name, arm, what, when="after"):
    """Norms by layer, the mean over the seeds: ``what`` is "activations" or "gradients".

    Returns
    -------
    ndarray of float64, shape (n_layer + 1,)
        NaN where a run broke down.  The mean is geometric, because norms differ by factors.
    """
    runs = [results["runs"][key] for key in _experiment(results, name)["arms"][arm]]
    norms = np.array([run[what][when] for run in runs], float)  # (seeds, n_layer + 1)
    with np.errstate(divide="ignore"):  # a gradient of exactly 0 has no logarithm
        return np.exp(np.log(norms).mean(0))


def by_position(results, name, arm):
    """Loss in each part of long rows: mean and half the interval, (parts,) each."""
    runs = [results["runs"][key] for key in _experiment(results, name)["arms"][arm]]
    losses = np.array([run["loss_by_position"] for run in runs], float)  # (seeds, parts)
    pairs = [interval(column) for column in losses.T]
    return np.array([m for m, _ in pairs]), np.array([h for _, h in pairs])
