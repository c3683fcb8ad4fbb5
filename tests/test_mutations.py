"""Planted mistakes: each is one that people make, and the recordings must notice every one.

A mistake is a change to a module's source.  The changed source is run in the module's own
namespace, every other module that holds one of its functions is given the changed one, and a
comparison with recordings of llama.cpp is made.  Then all is put back.
"""

import contextlib
import importlib
import inspect
import sys
import types

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se
from synapse_edu.formats import activations as acts
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.matrix import Matrix

# Everything is imported first: a module imported while a mistake is planted would keep it.
for _name in ("model.load", "ops.reference.dots_portable", "ops.reference.dots_avx2"):
    importlib.import_module(f"synapse_edu.{_name}")
PORTABLE = se.Numerics.named("llama.cpp")
OPS = arrays("ops")


# --- judges: True if a difference from the recording is seen -------------------------------------
def activations():
    from synapse_edu.formats import activations as module

    kinds = {
        "Q8_0": [("d", "<f2"), ("q", "i1", 32)],
        "Q8_1": [("d", "<f2"), ("s", "<f2"), ("q", "i1", 32)],
    }
    kinds["Q8_K"] = [("d", "<f4"), ("q", "i1", 256), ("b", "<i2", 16)]
    for partner, fields in kinds.items():
        want = OPS[f"scalar.act.{partner}"].view(np.dtype(fields))
        got = module.quantize(OPS["in.act"][None], partner)
        if not np.array_equal(got.codes[0], want["q"]) or not np.array_equal(got.d[0], want["d"]):
            return True
        if partner == "Q8_1" and not np.array_equal(got.s[0], want["s"]):
            return True
        if partner == "Q8_K" and not np.array_equal(got.sums[0], want["b"]):
            return True
    return False


def close_calls():
    """Rows recorded from ggml because they lie on a tie, or next to one."""
    from synapse_edu.formats import activations as module

    rows = arrays("activations")
    for x, raw, partner, fields in (
        ("q8_x", "q8_raw", "Q8_0", [("d", "<f2"), ("q", "i1", 32)]),
        ("qk_x", "qk_raw", "Q8_K", [("d", "<f4"), ("q", "i1", 256), ("b", "<i2", 16)]),
    ):
        want = rows[raw].view(np.dtype(fields))
        if not np.array_equal(module.quantize(rows[x][None], partner).codes[0], want["q"]):
            return True
    return False


def decoding():
    from synapse_edu.formats import decode as module

    return any(
        differing(module.decode(OPS[f"fmt.{name}.raw"], name), OPS[f"fmt.{name}.deq"])
        for name in FORMATS
        if name != "F32"
    )


def products():
    from synapse_edu.ops.reference import matmul as module

    for name in FORMATS:
        if name != "F32":
            weight = Matrix(OPS[f"fmt.{name}.raw"], name, 1536)
            got = module.matmul(weight, OPS["in.act"][None], PORTABLE)[0]
            if differing(got, OPS[f"scalar.dot.{name}"]):
                return True
    return False


def passes(*variants):
    """A judge that runs whole passes and compares every recorded step and logit."""

    def judge():
        return any(_pass_differs(name) for name in variants)

    judge.__name__ = "passes_" + "_".join(variants)
    return judge


def _pass_differs(name):
    want = arrays(name)
    model = se.load(FORWARD / f"{name}.gguf", backend="reference").with_numerics(PORTABLE)
    cache, logits = model.new_cache(512), []
    for position, token in enumerate(want["tokens"].tolist()):
        for step in model.walk(token, cache):
            key = f"scalar.p{position}.{step.llama_cpp_name}"
            if key in want and differing(step.value.ravel(), want[key].ravel()):
                return True
        logits.append(step.value)
    return bool(differing(np.array(logits)[want["logit_pos"]], want["scalar.step"]))


def softmax_op():
    from synapse_edu.ops.reference import attention as module

    for n in (3, 8, 37, 256, 300):
        x = OPS[f"in.sm{n}"]
        visible = [n, n // 2]
        got = module.softmax(x[:, None], PORTABLE, 0.17677669, visible, tail=True)[:, 0]
        if differing(got, OPS[f"scalar.softmax.{n}"]):
            return True
    return False


def norm_op():
    from synapse_edu.ops.reference import norm as module

    got, _ = module.rms_norm(OPS["in.rms_x"], OPS["in.rms_w"], 1e-5)
    return bool(differing(got, OPS["scalar.rms"]))


def yarn_ramp():
    """No recording has a ramp of width 0; the rule for it is llama.cpp's floor of 0.001."""
    from synapse_edu.config import Rope
    from synapse_edu.ops.reference import rope as module

    narrow = Rope(n_rot=16, scaling="yarn", factor=4.0, n_ctx_orig=6)
    with np.errstate(all="ignore"):
        mix = module.yarn_mix(narrow)
    return not np.isfinite(mix).all()


# --- planting ------------------------------------------------------------------------------------
@contextlib.contextmanager
def planted(module_name, *changes):
    module = importlib.import_module(f"synapse_edu.{module_name}")
    source = inspect.getsource(module)
    for old, new in changes:
        assert old in source, f"{module_name} no longer holds {old!r}: write this mistake anew"
        source = source.replace(old, new)
    before = dict(vars(module))
    others = [m for n, m in sys.modules.items() if n.startswith("synapse_edu") and m is not None]
    exec(compile(source, module.__file__, "exec"), vars(module))
    swaps = {
        id(old): vars(module)[name]
        for name, old in before.items()
        if isinstance(old, types.FunctionType | dict)
        and vars(module).get(name) is not old
        and not name.startswith("__")
    }
    restore = []
    for other in others:
        for name, value in list(vars(other).items()):
            if other is not module and id(value) in swaps and not name.startswith("__"):
                restore.append((other, name, value))
                setattr(other, name, swaps[id(value)])
    try:
        yield
    finally:
        vars(module).clear()
        vars(module).update(before)
        for other, name, value in restore:
            setattr(other, name, value)


ACT, UNPACK, DOTS = "formats.activations", "formats.unpack", "ops.reference.dots_portable"
NORM, ROPE, ATT = "ops.reference.norm", "ops.reference.rope", "ops.reference.attention"
FFN = "ops.reference.feedforward"
F32_MODEL, F16_MODEL = passes("llama_f32_untied"), passes("llama_f16")

MISTAKES = {
    "Q8_1: s from the rounded scale": (activations, ACT, ('total * d, "F16"', 'total * round_to(d, "F16"), "F16"')),
    "Q8_0: ties to even": (activations, ACT, ("half_away(x * inverse", "np.rint(x * inverse")),
    "Q8_0: 127/amax instead of 1/d": (close_calls, ACT, ("np.where(d != 0, F32(1) / d, F32(0))", "np.where(largest != 0, F32(127) / largest, F32(0))")),
    "Q8_K: ties away from zero": (close_calls, ACT, ("np.minimum(np.rint(x * inverse[..., None]), 127)", "np.minimum(half_away(x * inverse[..., None]), 127)")),
    "Q8_K: scale in 16 bits": (activations, ACT, ('"Q8_K", codes, d, sums', '"Q8_K", codes, round_to(d, "F16"), sums')),
    "Q8_K: sums over 32": (activations, ACT, ("codes.reshape(*codes.shape[:2], 16, 16).sum(-1, dtype=np.int32)", "np.repeat(codes.reshape(*codes.shape[:2], 8, 32).sum(-1, dtype=np.int32), 2, -1)")),
    "F16 activations unrounded": (products, ACT, ('if partner == "F16":\n        with', 'if partner == "never":\n        with')),
    "BF16 activations unrounded": (products, ACT, ('if partner == "BF16":', 'if partner == "never":')),
    "nibbles interleaved": (decoding, UNPACK, ("return np.concatenate([qs & 15, qs >> 4], -1)", "return np.stack([qs & 15, qs >> 4], -1).reshape(*qs.shape[:-1], -1)")),
    "scales from j = 4 unpacked like the first": (decoding, UNPACK, ("[a & 63, (c & 15) | (a >> 6) << 4]", "[a & 63, c & 63]")),
    "fifth bits from the wrong byte": (decoding, UNPACK, ("qh >> np.arange(32, dtype=np.uint32)", "qh >> np.arange(32, dtype=np.uint32)[::-1]")),
    "Q6_K without its -32": (decoding, UNPACK, (".view(np.int8) - np.int8(32)", ".view(np.int8)")),
    "Q3_K: mask inverted": (decoding, UNPACK, ("(1 - high)", "high")),
    "Q4_1 without m·s": (products, DOTS, (" + w.m[:, i] * y.s[:, i, None]", "")),
    "lanes by 32 instead of index mod 8": (products, DOTS, ("n_block, 32, 8).swapaxes(2, 3)", "n_block, 8, 32)")),
    "minima taken off after the lanes": (products, DOTS, ("    s = np.zeros(lanes.shape[2:], F32)  # (n, m)\n", "    s = np.zeros(lanes.shape[2:], F32)\n    late = np.zeros_like(s)\n"), ("s -= (w.dmin[:, i] * yd) * msum[i]", "late -= (w.dmin[:, i] * yd) * msum[i]"), ("        s += sums[lane]\n    return s", "        s += sums[lane]\n    return s + late")),
    "float32 sums in float products": (products, DOTS, ("axis=-1, dtype=np.float64)[..., -1]", "axis=-1, dtype=F32)[..., -1]")),
    "norm: float32 sum": (passes("llama_f32_untied", "llama_q4_k"), NORM, ("(x * x).astype(np.float64)", "(x * x)")),
    "norm: x·(scale·w)": (F32_MODEL, NORM, ("return scaled, scaled * weight", "return scaled, x * (scale * weight)")),
    "norm: epsilon outside the mean": (norm_op, NORM, ("np.sqrt(mean + F32(eps))", "(np.sqrt(mean) + F32(eps))")),
    "norm: divided by the root": (norm_op, NORM, ("scaled = x * scale", "scaled = x / np.sqrt(mean + F32(eps))")),
    "RoPE: angle by a power": (F32_MODEL, ROPE, ("turned = turned * step", "turned = (np.asarray(positions) * float(rope.freq_base) ** (-2.0 * (i + 1) / rope.n_rot)).astype(F32)")),
    "RoPE: factor multiplied": (passes("llama_f32_ropefreqs"), ROPE, ("theta / freq_factors", "theta * freq_factors")),
    "RoPE: halves on llama": (F32_MODEL, ROPE, ('if rope.layout == "normal":\n', 'if rope.layout != "normal":\n')),
    "RoPE: cosine one unit off": (F32_MODEL, ROPE, ("return cos * magnitude, sin", "return np.nextafter(cos, F32(2)) * magnitude, sin")),
    "YaRN: ramp without its floor": (yarn_ramp, ROPE, ("max(F32(0.001), high - low)", "(high - low)")),
    "YaRN: cancellation skipped": (passes("llama_f32_yarn"), ROPE, ("    result = result * (F32(1) / (F32(1) + F32(0.1) * logf(factor)))\n", "")),
    "YaRN: factor on the extrapolated angle": (passes("llama_f32_yarn"), ROPE, ("+ theta * mix", "+ scale * theta * mix")),
    "attention: q scaled before rounding": (F16_MODEL, ATT, ("q = _round(q, numerics.q)", "q = _round(q / np.sqrt(F32(head_dim)), numerics.q) * np.sqrt(F32(head_dim))")),
    "attention: q unrounded": (F16_MODEL, ATT, ("q = _round(q, numerics.q)", "q = q")),
    "attention: probabilities unrounded": (F16_MODEL, ATT, ("p = _round(probabilities, numerics.probabilities)", "p = probabilities")),
    "attention: head h mod n_kv": (passes("llama_f32_untied", "llama_q4_k"), ATT, ("heads = slice(g * n_group, (g + 1) * n_group)", "heads = slice(g, None, n_head // n_group)")),
    "attention: mask off by one": (F32_MODEL, ATT, (">= np.asarray(visible)[:, None]", ">= np.asarray(visible)[:, None] - 1")),
    "temperature after the rounding": (passes("mistral3_f16_yarn_temp"), ATT, ("return q * factor", 'return _round(q, "float16") * factor')),
    "soft-max: divided by the sum": (softmax_op, ATT, ("return p * (1.0 / total).astype(F32)", "return (p / total).astype(F32)")),
    "soft-max: float32 sum": (softmax_op, ATT, ("np.cumsum(terms.astype(np.float64), axis=-1)", "np.cumsum(terms, axis=-1)")),
    "soft-max and SiLU: libm's exp": (F32_MODEL, FFN, ('y = exp_poly(x, fused=numerics.order == "avx2")', "y = expf(x)")),
    "SiLU by a reciprocal": (F32_MODEL, FFN, ("return gate / (F32(1) + exp(F32(0) - gate, numerics))", "return gate * (F32(1) / (F32(1) + exp(F32(0) - gate, numerics)))")),
    "the tied matrix though there is an output": (F32_MODEL, "checkpoint.weights", ('tied = not read.has("output.weight")', "tied = True")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_the_recordings_notice(name):
    judge, module, *changes = MISTAKES[name]
    with planted(module, *changes):
        try:
            noticed = judge()
        except Exception:  # a pass that fails is noticed too
            noticed = True
    assert noticed


@pytest.mark.parametrize("switch", ["cache", "q", "probabilities", "activations"])
def test_a_storage_left_unrounded_is_noticed(switch):
    """K, V and the others by their switches, on a model whose weights are 16-bit floats."""
    want = arrays("llama_f16")
    keep = {"q": "float16", "probabilities": "float16"}
    numerics = PORTABLE.replace(**(keep | {switch: "float32"}))
    model = se.load(FORWARD / "llama_f16.gguf", backend="reference").with_numerics(numerics)
    got = model.prefill(want["tokens"].tolist(), model.new_cache(512), logits="all")
    assert differing(got[want["logit_pos"]], want["scalar.step"])


JUDGES = sorted({judge for judge, *_ in MISTAKES.values()}, key=lambda j: j.__name__)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda j: j.__name__)
def test_without_a_mistake_nothing_is_noticed(judge):
    """And everything was put back: this runs after the planting."""
    assert not judge()
    assert acts.half_away(np.float32(2.5)) == 3
