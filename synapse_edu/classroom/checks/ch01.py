"""Quick checks of chapter 01."""

from ...config import Config
from ...study.cost import Cost
from ..tasks import Task, register

SMOL = Config.named("smollm2-135m")

register(
    Task(
        "01.group",
        right=lambda: SMOL.n_group,
        hints=(
            "The query heads are dealt out evenly among the key/value heads.",
            "Divide the number of query heads by the number of key/value heads.",
            f"{SMOL.n_head} query heads, {SMOL.n_head_kv} key/value heads.",
        ),
        mistakes=lambda: [
            (SMOL.n_head, "this is the number of all query heads"),
            (SMOL.n_head - SMOL.n_head_kv, "this is the difference, not the quotient"),
        ],
    )
)
register(
    Task(
        "01.cache",
        right=lambda: Cost.of(SMOL).cache_bytes(1),
        hints=(
            "Use the formula above with the numbers of smol.",
            "2 (K and V) · layers · key/value heads · width of a head · 2 bytes.",
            f"2 · {SMOL.n_layer} · {SMOL.n_head_kv} · {SMOL.head_dim} · 2.",
        ),
        mistakes=lambda: [
            (Cost.of(SMOL).cache_bytes(1, materialised=True), "you counted the query heads"),
            (Cost.of(SMOL).cache_bytes(1) // 2, "K and V, or the two bytes, are counted once"),
            (Cost.of(SMOL).cache_bytes(1) // SMOL.n_layer, "this is one layer; there are 30"),
            (Cost.of(SMOL).cache_bytes(1) * 2, "a 16-bit number takes 2 bytes, not 4"),
        ],
    )
)
