"""The roofline as a picture: a machine's two limits, and where each phase stands under them."""

from ..errors import BadArgument
from ..study.roofline import place
from .figure import figure

MARKERS = "os^Dv<>P"


def render(machine, phases, measured=None, title=None):
    """A figure of the roofline with one marker a phase.

    Parameters
    ----------
    machine : study.roofline.Machine
    phases : dict of str → study.cost.Phase
        What to place on it, by name.
    measured : dict of str → float, optional
        Measured tokens a second for some of the names, drawn as a hollow marker below.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        With an attribute ``alt``: the picture in words.
    """
    if not phases:
        raise BadArgument("The roofline needs at least one phase to place.")
    placed = place(machine, phases, measured)
    intensities = [p.intensity for p in placed]
    low, high = min(*intensities, machine.ridge) / 4, max(*intensities, machine.ridge) * 4
    drawn, axes = figure(7, 4.2)
    axes.plot(
        [low, machine.ridge, high],
        [v / 1e9 for v in machine.attainable([low, machine.ridge, high])],
        color="black",
        linewidth=1.5,
    )
    axes.axvline(machine.ridge, color="0.6", linestyle=":", linewidth=1)
    for i, p in enumerate(placed):
        marker, color = MARKERS[i % len(MARKERS)], f"C{i}"
        ceiling = float(machine.attainable(p.intensity)) / 1e9
        label = f"{p.name}: {p.bound}-bound, at most {p.predicted:.3g}/s"
        axes.plot([p.intensity], [ceiling], marker, color=color, markersize=8, label=label)
        if p.measured is not None:
            rate = ceiling * p.share
            axes.plot([p.intensity], [rate], marker, color=color, markersize=8, fillstyle="none")
            axes.plot([p.intensity] * 2, [rate, ceiling], color=color, linewidth=0.8)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="multiply-accumulates a byte read",
        ylabel="G multiply-accumulates a second",
        title=title or machine.name,
    )
    axes.grid(True, which="major", color="0.9")
    axes.legend(fontsize=8, loc="lower right")
    drawn.alt = describe(machine, phases, measured)
    return drawn


def describe(machine, phases, measured=None):
    """The same as sentences: a table for readers who do not see the picture."""
    lines = [
        f"{machine.name}: {machine.bandwidth / 1e9:.3g} GB/s, {machine.macs / 1e9:.3g} G "
        f"multiply-accumulates/s; the two limits meet at {machine.ridge:.3g} a byte."
    ]
    for p in place(machine, phases, measured):
        line = (
            f"{p.name}: {p.intensity:.3g} multiply-accumulates a byte, {p.bound}-bound, "
            f"at most {p.predicted:.4g} tokens/s"
        )
        if p.measured is not None:
            line += f"; measured {p.measured:.4g} tokens/s, {100 * p.share:.0f} % of it"
        lines.append(line + ".")
    return "\n".join(lines)
