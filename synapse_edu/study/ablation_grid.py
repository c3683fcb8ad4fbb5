"""Which ablations there are: experiments around one design, and the runs that they need."""

from dataclasses import dataclass, field, replace

from ..errors import BadArgument
from . import variants
from .recipe import Recipe

# plain stories only, every word with the same weight
BUDGET = Recipe(
    n_steps=400, n_batch=4, n_pos=128, learning_rate=3e-3, final_rate=3e-4, n_warmup=40,
    n_repeat=0, least_repeat=0.0, n_drill=0, least_drill=0.0, rule_weight=1.0,
)  # fmt: skip


DEEP = {"n_batch": 2}  # sixteen layers take long


@dataclass(frozen=True)
class Experiment:
    """One question: designs that differ in one choice.

    Attributes
    ----------
    name, question : str
    arms : dict of str → Design
    reference : str
        The arm that the others are compared with: what Llama does.
    budget : dict
        What differs from the common recipe, for all of its arms.
    """

    name: str
    question: str
    arms: dict
    reference: str
    budget: dict = field(default_factory=dict)


def experiments(base):
    """The experiments around a design, which is Llama's in small.

    Parameters
    ----------
    base : Design
        With a width that 3 divides, so that 8/3 of it is a whole number.
    """
    d = base.n_embd
    if 8 * d % 3 or base.n_ff != 8 * d // 3:
        raise BadArgument(f"The base design needs n_ff = 8/3 of n_embd; {base.n_ff} is not.")

    def arms(**changes):
        return {name: replace(base, **change) for name, change in changes.items()}

    yield from (norm_place(base, n) for n in (2, 8))
    deep = norm_place(base, 16)
    question = f"{deep.question}, half as many rows a step"
    yield replace(deep, question=question, budget=DEEP)
    yield Experiment(
        f"{deep.name}_slow",
        f"{question}, a sixth of the learning rate",
        {place: deep.arms[place] for place in ("pre", "post")},
        "pre",
        DEEP | {"learning_rate": 5e-4},
    )
    yield Experiment("norm", "RMSNorm or LayerNorm", arms(rms={}, layer={"norm": "layer"}), "rms")
    yield Experiment(
        "positions",
        "where a token stands: rotations, a learned table, nothing",
        arms(rope={}, learned={"positions": "learned"}, none={"positions": "none"}),
        "rope",
    )
    n_head = base.n_head
    yield Experiment(
        "kv_heads",
        "key/value heads: one for each query head, or shared",
        {f"{n}": replace(base, n_head_kv=n) for n in (n_head, n_head // 2, n_head // 4)},
        f"{n_head}",
    )
    yield Experiment(
        "ffn",
        "the feed-forward layer, at equal parameters and not",
        arms(
            swiglu={}, relu={"ffn": "relu", "n_ff": 4 * d}, gelu={"ffn": "gelu", "n_ff": 4 * d},
            swiglu_4d={"n_ff": 4 * d},
        ),
        "swiglu",
    )  # fmt: skip
    yield Experiment(
        "tied", "one table for input and output, or two", arms(tied={}, untied={"tied": False}),
        "tied",
    )  # fmt: skip


def norm_place(base, n_layer):
    """Where the norm stands, at one depth."""
    places = variants.CHOICES["norm_place"]
    arms = {place: replace(base, n_layer=n_layer, norm_place=place) for place in places}
    question = f"where the norm stands, {n_layer} layers"
    return Experiment(f"norm_place_{n_layer}", question, arms, "pre")


def key(design, base, budget, seed):
    """A run's name: what is changed, and the seed."""
    changes = design.changed_from(base) | budget
    return "_".join([*(f"{k}-{v}" for k, v in changes.items()), f"seed-{seed}"])


def keys(experiment, base, seeds):
    """The keys of an experiment's runs: dict of arm → list in the order of the seeds."""
    return {
        arm: [key(design, base, experiment.budget, seed) for seed in seeds]
        for arm, design in experiment.arms.items()
    }


def runs_of(base, recipe, seeds):
    """Every run that the experiments need, each once: dict of key → (design, recipe)."""
    return {
        key(design, base, e.budget, seed): (design, replace(recipe, seed=seed, **e.budget))
        for e in experiments(base)
        for design in e.arms.values()
        for seed in seeds
    }
