"""The roofline as a picture: a machine's two limits, and where each phase stands under them."""

from ..errors import BadArgument
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
    measured = measured or {}
    intensities = {name: _intensity(phase) for name, phase in phases.items()}
    low = min(*intensities.values(), machine.ridge) / 4
    high = max(*intensities.values(), machine.ridge) * 4
    drawn, axes = figure(7, 4.2)
    axes.plot(
        [low, machine.ridge, high],
        [v / 1e9 for v in machine.attainable([low, machine.ridge, high])],
        color="black",
        linewidth=1.5,
    )
    axes.axvline(machine.ridge, color="0.6", linestyle=":", linewidth=1)
    for i, (name, phase) in enumerate(phases.items()):
        x, marker = intensities[name], MARKERS[i % len(MARKERS)]
        ceiling = float(machine.attainable(x)) / 1e9
        axes.plot(
            [x], [ceiling], marker, color=f"C{i}", markersize=8, label=_legend(machine, name, phase)
        )
        if name in measured:
            rate = measured[name] * phase.macs / phase.n_tokens / 1e9
            axes.plot([x], [rate], marker, color=f"C{i}", markersize=8, fillstyle="none")
            axes.plot([x, x], [rate, ceiling], color=f"C{i}", linewidth=0.8)
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


def _intensity(phase):
    return phase.macs / (phase.weight_bytes + phase.cache_bytes)


def _legend(machine, name, phase):
    return f"{name}: {machine.bound(phase)}-bound, at most {machine.tokens_per_second(phase):.3g}/s"


def describe(machine, phases, measured=None):
    """The same as sentences: a table for readers who do not see the picture."""
    lines = [
        f"{machine.name}: {machine.bandwidth / 1e9:.3g} GB/s, {machine.macs / 1e9:.3g} G "
        f"multiply-accumulates/s; the two limits meet at {machine.ridge:.3g} a byte."
    ]
    for name, phase in phases.items():
        line = (
            f"{name}: {_intensity(phase):.3g} multiply-accumulates a byte, "
            f"{machine.bound(phase)}-bound, at most {machine.tokens_per_second(phase):.4g} tokens/s"
        )
        if measured and name in measured:
            share = measured[name] / machine.tokens_per_second(phase)
            line += f"; measured {measured[name]:.4g} tokens/s, {100 * share:.0f} % of it"
        lines.append(line + ".")
    return "\n".join(lines)
