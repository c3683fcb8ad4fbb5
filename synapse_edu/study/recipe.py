"""The numbers that decide how the built-in model is trained."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result.

    Attributes
    ----------
    n_steps, n_batch, n_pos : int
        Steps; rows a step; positions a row.
    learning_rate, final_rate : float
        Peak, and where the cosine ends.
    n_warmup : int
    weight_decay, beta1, beta2, clip : float
    n_repeat, least_repeat : int, float
        Steps over which the share of random repeated sequences falls from 0.7 to the least.
    n_drill, least_drill : int, float
        Steps over which the share of drills among the rest falls from all to the least.
    rule_weight : float
        Weight in the loss of a word that the rules determine; other words weigh 1.
    seed : int
    """

    n_steps: int = 5000
    n_batch: int = 16
    n_pos: int = 128
    learning_rate: float = 3e-3
    final_rate: float = 1e-4
    n_warmup: int = 200
    weight_decay: float = 0.05
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0
    n_repeat: int = 800
    least_repeat: float = 0.05
    n_drill: int = 2500
    least_drill: float = 0.1
    rule_weight: float = 5.0
    seed: int = 1
