"""Quick checks of chapter 04."""

from ...config import Config
from ...study.cost import Cost
from ..tasks import Task, register

N = 512


def _saved():
    """Percent of a prompt's products that are saved when only the last row is scored."""
    cost = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
    every = cost.prefill(N, logits="all").matrix_macs
    return 100 * (1 - cost.prefill(N).matrix_macs / every)


register(
    Task(
        "04.hidden",
        right=lambda: 100 * (N * (N - 1) / 2) / N**2,
        rtol=1e-3,
        hints=(
            "Row 0 hides 511 scores, row 1 hides 510, … the last row none.",
            "0 + 1 + … + 511 = 512 · 511 / 2.",
            "Divide by 512 · 512; a little less than a half.",
        ),
        mistakes=lambda: [
            (50.0, "a token sees itself: the diagonal is not hidden"),
            (100 * (N * (N + 1) / 2) / N**2, "this is the percentage that stays visible"),
            ((N - 1) / (2 * N), "this is the fraction; the question asks for per cent"),
        ],
    )
)
register(
    Task(
        "04.last_row",
        right=_saved,
        rtol=5e-3,
        hints=(
            "The two numbers stand in the output above.",
            "Take their difference over the larger one.",
            "The output matrix is 262.7 M of 1 235.7 M a token, and 511 of 512 rows skip it.",
        ),
        mistakes=lambda: [
            (_saved() / 100, "this is the fraction; the question asks for per cent"),
            (100 * _saved() / (100 - _saved()), "divide by the work for all rows"),
            (100 - _saved(), "this is what is left to do"),
        ],
    )
)
