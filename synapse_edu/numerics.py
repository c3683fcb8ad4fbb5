"""Numerics: where values are rounded, and in which order they are summed.

Two engines that implement the same formula differ in two ways only: the places where a value is
stored in fewer bits, and the order in which a sum is taken.  This record holds one switch for
each, so that a chapter can flip them one at a time.

Examples
--------
>>> Numerics.named("llama.cpp").cache
'float16'
>>> Numerics.named("llama.cpp").replace(cache="float32").q
'float32'
"""

from dataclasses import dataclass, fields
from dataclasses import replace as _replace

from .errors import BadArgument

CHOICES = {
    "activations": ("partner", "quantized", "float32"),
    "cache": ("float16", "float32"),
    "q": ("float16", "float32"),
    "probabilities": ("float16", "float32"),
    "order": ("portable", "avx2", "float64"),
    "fma": (False, True),
    "elementary": ("llama.cpp", "exact"),
    "repack": (False, True),
}


@dataclass(frozen=True)
class Numerics:
    """Where one forward pass rounds, and how it sums.

    Attributes
    ----------
    name : str
        The preset this record came from; ``"custom"`` after a change.
    activations : {"partner", "quantized", "float32"}
        What meets the weights of a matrix product.  ``"partner"``: the activation row is first
        converted to the weight format's partner (Q8_0, Q8_1, Q8_K, F16, BF16, F32).
        ``"quantized"``: the same for quantized weights, but F16 and BF16 weights meet float32.
        ``"float32"``: never converted; quantized weights are decoded to float32 instead.
    cache, q, probabilities : {"float16", "float32"}
        Storage of keys and values; of the query before q·k; of the soft-max weights before they
        meet V.
    order : {"portable", "avx2", "float64"}
        Order of summation.  ``"portable"``: llama.cpp's portable C code.  ``"avx2"``: its AVX2
        build.  ``"float64"``: every dot product one sequential float64 sum.
    fma : bool
        Whether plain expressions such as RoPE's are contracted to fused multiply-adds, as GCC
        does in the AVX2 build.
    elementary : {"llama.cpp", "exact"}
        exp in soft-max and SiLU: llama.cpp's float32 polynomial, or the float64 result rounded
        once.
    repack : bool
        Whether some weights are interleaved eight rows at a time, which changes the order of
        sums (AVX2 build only).
    """

    name: str = "custom"
    activations: str = "partner"
    cache: str = "float16"
    q: str = "float16"
    probabilities: str = "float16"
    order: str = "portable"
    fma: bool = False
    elementary: str = "llama.cpp"
    repack: bool = False

    def __post_init__(self):
        for field, allowed in CHOICES.items():
            value = getattr(self, field)
            if value not in allowed:
                raise BadArgument(
                    f"Numerics: {field}={value!r} is not known; choose one of "
                    f"{', '.join(map(repr, allowed))}."
                )

    @staticmethod
    def named(name):
        """The preset `name`, one of `PRESETS`; a Numerics is returned as it is."""
        if isinstance(name, Numerics):
            return name
        try:
            return PRESETS[name]
        except (KeyError, TypeError):
            raise BadArgument(
                f"Numerics {name!r} is not known; choose one of {', '.join(PRESETS)}."
            ) from None

    def replace(self, **changes):
        """A copy with some switches changed.

        ``cache="float32"`` also leaves q and the probabilities unrounded, because llama.cpp
        rounds them only to meet a float16 cache; name them too to set each apart.
        """
        known = {f.name for f in fields(self)}
        for field in changes:
            if field not in known:
                raise BadArgument(
                    f"Numerics has no switch {field!r}; it has {', '.join(sorted(CHOICES))}."
                )
        if "cache" in changes:
            changes.setdefault("q", changes["cache"])
            changes.setdefault("probabilities", changes["cache"])
        changes.setdefault("name", "custom")
        changed = _replace(self, **changes)
        for preset in PRESETS.values():
            if _replace(changed, name=preset.name) == preset:
                return preset
        return changed


PRESETS = {
    "textbook": Numerics(
        "textbook",
        activations="float32",
        cache="float32",
        q="float32",
        probabilities="float32",
        order="float64",
        elementary="exact",
    ),
    "llama.cpp": Numerics("llama.cpp"),
    "synapse": Numerics("synapse", activations="quantized"),
    "llama.cpp-avx2": Numerics("llama.cpp-avx2", order="avx2", fma=True, repack=True),
}
