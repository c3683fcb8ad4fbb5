"""Quick checks of chapter 10."""

from ...config import Config
from ...study.cost import Cost, dense_weights
from ..tasks import Task, register


def _requests():
    config = Config("llama", 40, 5120, 40, 8, 128, 64, 16, 8192)
    return 24 * 2**30 // Cost.of(config).cache_bytes(8192, bytes_per_element=1)


register(
    Task(
        "10.weights",
        right=lambda: dense_weights(24, 1024, 4096, 50_000),
        hints=(
            "Each layer has 4·d² + 2·d·f weights; the two tables have V·d each.",
            "24 · (4 · 1024² + 2 · 1024 · 4096) is one part.",
            "Add 2 · 50 000 · 1024.",
        ),
        mistakes=lambda: [
            (dense_weights(24, 1024, 4096, 25_000), "the vocabulary has two tables here"),
            (dense_weights(24, 1024, 4096, 50_000, gated=True), "the layer has two matrices"),
            (dense_weights(24, 1024, 4096, 0), "the tables of the vocabulary are missing"),
            (dense_weights(1, 1024, 4096, 50_000), "there are 24 layers"),
        ],
    )
)
register(
    Task(
        "10.requests",
        right=_requests,
        hints=(
            "First the bytes of one token: 2 · 40 · 8 · 128 · 1.",
            "Then of one request: times 8 192. Divide 24 · 2³⁰ by it.",
            "Only whole requests count.",
        ),
        mistakes=lambda: [
            (19, "K and V were counted in two bytes a number; int8 takes one"),
            (76, "K or V is missing"),
            (39, "only whole requests fit"),
            (38.4, "only whole requests count"),
        ],
    )
)
