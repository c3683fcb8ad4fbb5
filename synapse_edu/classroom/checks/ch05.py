"""Quick checks of chapter 05."""

from ...config import Config
from ...study.cost import Cost
from ...study.roofline import PRESETS, Machine
from ..tasks import Task, register

LLAMA = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
LARGE = Cost.of(Config.named("llama-3-8b"), "Q4_K_M")
LAPTOP = PRESETS["laptop, two channels of DDR5-5600"]


def _positions():
    return (LLAMA.layer_macs + LLAMA.logit_macs) / LLAMA.attention_macs(0)


def _conversations():
    return (16 * 2**30 - LARGE.nbytes) // LARGE.cache_bytes(8192)


def _faster():
    """How much faster the limit of a prefill of 512 becomes with twice the bandwidth."""
    phase = LLAMA.prefill(512)
    twice = Machine("", 2 * LAPTOP.bandwidth, LAPTOP.macs, "")
    return twice.tokens_per_second(phase) / LAPTOP.tokens_per_second(phase)


register(
    Task(
        "05.attention",
        right=_positions,
        atol=100.0,
        hints=(
            "65 536 multiply-accumulates for each position: how many positions make 1.236 G?",
            "1 235 746 816 / 65 536.",
            "Between 18 000 and 19 000.",
        ),
        mistakes=lambda: [
            (LLAMA.layer_macs / LLAMA.attention_macs(0), "the logits are a matrix product too"),
            (_positions() * 16, "65 536 counts all sixteen layers"),
            (_positions() * 2, "65 536 counts keys and values"),
        ],
    )
)
register(
    Task(
        "05.conversations",
        right=_conversations,
        hints=(
            "First the weights: Cost.of(se.Config.named('llama-3-8b'), 'Q4_K_M').nbytes.",
            "Each conversation of 8 192 tokens has 1 GiB of cache.",
            "16 GiB less about 4.6 GiB: only whole conversations count.",
        ),
        mistakes=lambda: [
            (16, "the weights need room as well"),
            (_conversations() + 1, "only whole conversations fit"),
            (_conversations() // 4, "the cache holds 8 shared heads, not 32"),
        ],
    )
)
register(
    Task(
        "05.bandwidth",
        right=_faster,
        rtol=1e-3,
        hints=(
            "Which of the two limits is the nearer one for a prefill of 512?",
            "It is bound by arithmetic.",
            "Memory was not what it waited for.",
        ),
        mistakes=lambda: [(2, "that is the factor for decoding, which waits for memory")],
    )
)
