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


DEEP = {"n_batch": 1 / 2, "n_steps": 1 / 2, "n_warmup": 1 / 2}  # sixteen layers take long


@dataclass(frozen=True)
class Experiment:
    """One question: designs that differ in one choice.

    Attributes
    ----------
    name, question : str
    arms : dict of str → Design
    reference : str
        The arm that the others are compared with: what Llama does.
    budget : dict of str → float
        By what numbers of the common recipe are multiplied, for all of its arms.
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
    question = f"{deep.question}, a quarter of the tokens"
    yield replace(deep, question=question, budget=DEEP)
    yield Experiment(
        f"{deep.name}_slow",
        f"{question}, a sixth of the learning rate",
        {place: deep.arms[place] for place in ("pre", "post")},
        "pre",
        DEEP | {"learning_rate": 1 / 6},
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


def recipe_of(experiment, recipe, seed):
    """The common recipe as one experiment has it, with one of the seeds."""

    def scaled(value, factor):
        return max(1, round(value * factor)) if isinstance(value, int) else value * factor

    changes = {name: scaled(getattr(recipe, name), x) for name, x in experiment.budget.items()}
    return replace(recipe, seed=seed, **changes)


def keys(experiment, base, recipe, seeds):
    """Names of an experiment's runs: what is changed, and the seed.

    Returns
    -------
    dict of str → list of str
        For each arm, in the order of the seeds.
    """
    mine = recipe_of(experiment, recipe, 0)
    budget = {name: getattr(mine, name) for name in experiment.budget}
    names = {
        arm: "_".join(f"{k}-{v}" for k, v in (design.changed_from(base) | budget).items())
        for arm, design in experiment.arms.items()
    }
    return {arm: [f"{name}_seed-{s}".lstrip("_") for s in seeds] for arm, name in names.items()}


def runs_of(base, recipe, seeds):
    """Every run that the experiments need, each once: dict of name → (design, recipe)."""
    runs = {}
    for experiment in experiments(base):
        for arm, names in keys(experiment, base, recipe, seeds).items():
            for name, seed in zip(names, seeds, strict=True):
                runs[name] = experiment.arms[arm], recipe_of(experiment, recipe, seed)
    return runs
