"""The walk: order and shapes of its steps, replacing values, giving up, and its contracts."""

import numpy as np
import pytest
from golden_data import FORWARD, VARIANTS, arrays, differing

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull

VARIED = [
    "llama_f32_untied",
    "llama_f32_allbias",
    "qwen2_q8_0",
    "mistral3_f32_yarn_temp",
    "mistral3_f16_yarn_temp",
    "llama_mix_q4km",
]
PRESETS = ["textbook", "llama.cpp", "synapse", "llama.cpp-avx2"]
# Float16 storage hides the last bits of what it rounds; those switches are tried without it.
SWITCHES = [
    ("mistral3_f16_yarn_temp", "float16", {"cache": "float32"}),
    ("mistral3_f16_yarn_temp", "float16", {"q": "float32"}),
    ("mistral3_f16_yarn_temp", "float16", {"probabilities": "float32"}),
    ("mistral3_f16_yarn_temp", "float16", {"activations": "float32"}),
    ("mistral3_f16_yarn_temp", "float16", {"activations": "quantized"}),
    ("mistral3_f32_yarn_temp", "float32", {"elementary": "exact"}),
    ("mistral3_f32_yarn_temp", "float32", {"order": "float64"}),
    ("mistral3_f32_yarn_temp", "float32", {"fma": True}),
    ("llama_q4_k", "float16", {"activations": "float32"}),
]


def opened(name="llama_f32_untied", numerics="llama.cpp"):
    return se.load(FORWARD / f"{name}.gguf", numerics=numerics)


def ids_of(name="llama_f32_untied", n=12):
    return arrays(name)["tokens"][:n].tolist()


@pytest.mark.parametrize("name", VARIED)
def test_steps_follow_the_plan_with_the_shapes_it_gives(name):
    model, cache = opened(name), None
    cache = model.new_cache(8)
    for position, id in enumerate(ids_of(name, 3)):
        walked = list(model.walk(id, cache))
        assert [(s.spec, s.layer) for s in walked] == model.plan()
        for step in walked:
            assert step.value.shape == step.spec.shape(model.config, position), step.name
            assert step.value.dtype == np.float32 and step.position == position
    assert len(cache) == 3


def test_values_cannot_be_written_to():
    model = opened()
    cache = model.new_cache(4)
    for step in model.walk(5, cache):
        with pytest.raises(ValueError, match="read-only"):
            step.value[...] = 0


def test_a_list_of_ids_gives_values_with_an_axis_of_tokens():
    model, ids = opened(), ids_of()
    one, many = model.new_cache(16), model.new_cache(16)
    batch = {(s.name, s.layer): s.value for s in model.walk(ids, many)}
    for i, id in enumerate(ids):
        for step in model.walk(id, one):
            value = batch[step.name, step.layer][i]
            if step.name in ("scores", "probabilities"):
                value = value[:, : i + 1]
            assert differing(value, step.value) == 0, step.name
    assert differing(*(c.k[:, :, :12].astype(np.float32) for c in (one, many))) == 0


@pytest.mark.parametrize("name", VARIED)
@pytest.mark.parametrize("preset", PRESETS[:3])
def test_prefill_chunks_and_single_tokens_are_the_same_bits(name, preset):
    model, ids = opened(name, preset), ids_of(name)
    results = []
    for sizes in ([12], [5, 1, 6], [1] * 12):
        cache, rows = model.new_cache(12), []
        for size in sizes:
            part = ids[cache.n : cache.n + size]
            if size == 1:
                rows.append(model.decode(part[0], cache)[None])
            else:
                rows.append(model.prefill(part, cache, logits="all"))
        results.append((np.concatenate(rows), cache.k, cache.v))
    for logits, k, v in results[1:]:
        assert differing(logits, results[0][0]) == 0
        assert k.tobytes() == results[0][1].tobytes() and v.tobytes() == results[0][2].tobytes()


@pytest.mark.parametrize(("name", "storage", "switch"), SWITCHES, ids=str)
def test_each_switch_alone_changes_bits_and_little_else(name, storage, switch):
    ids, base = ids_of(name), opened(name)
    base = base.with_numerics(base.numerics.replace(cache=storage))
    other = base.with_numerics(base.numerics.replace(**switch))
    want = base.prefill(ids, base.new_cache(12), logits="all")
    got = other.prefill(ids, other.new_cache(12), logits="all")
    assert differing(got, want) > 0
    assert np.abs(got - want).max() < 0.1 * want.std()


def test_sent_value_replaces_the_step():
    model = opened()
    cache = model.new_cache(4)
    walk = model.walk(5, cache)
    step = next(walk)
    other = np.linspace(-1, 1, step.value.size, dtype=np.float32)
    following = walk.send(other)
    mean = np.float32((other.astype(np.float64) ** 2).mean())
    scale = np.float32(1) / np.sqrt(mean + np.float32(model.config.rms_eps))
    assert following.name == "attn_norm_scaled"
    assert np.allclose(following.value, other * scale, rtol=1e-6)
    other[:] = 99  # the pass holds a copy
    for step in walk:
        if step.name == "attn_residual" and step.layer == 0:
            assert np.abs(step.value).max() < 50


def test_sending_back_the_same_value_changes_no_bit():
    model, ids = opened("llama_f32_allbias"), ids_of("llama_f32_allbias", 4)
    plain, echoed = model.new_cache(4), model.new_cache(4)
    want = model.prefill(ids, plain)
    walk, answer = model.walk(ids, echoed), None
    while True:
        try:
            step = walk.send(answer)
        except StopIteration as end:
            assert differing(end.value[-1], want) == 0
            break
        answer = step.value
    assert echoed.k.tobytes() == plain.k.tobytes()
    assert plain.n_clean == 4 and echoed.n_clean == 0


@pytest.mark.parametrize("step_name", sorted({s.name for s in se.STEPS if not s.needs}))
def test_every_step_can_be_replaced_and_matters(step_name):
    model, ids = opened(), ids_of(n=3)
    cache = model.new_cache(4)
    model.prefill(ids[:2], cache)
    want = None
    for change in (False, True):
        walk, answer = model.walk(ids[2], cache), None
        while True:
            try:
                step = walk.send(answer)
            except StopIteration as end:
                logits = end.value
                break
            answer = step.value * np.float32(-1.5) if change and step.name == step_name else None
        if change:
            assert differing(logits, want) > 0
        want = logits
        cache.truncate(2)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(95, np.float32), np.zeros((1, 96), np.float32), np.zeros(96), [0.0] * 96, 0.0],
    ids=["short", "extra axis", "float64", "list", "scalar"],
)
def test_a_sent_value_of_another_shape_or_type_is_refused(wrong):
    model = opened()
    walk = model.walk(5, model.new_cache(4))
    next(walk)
    with pytest.raises(BadArgument, match=r"float32 of shape \(96,\)"):
        walk.send(wrong)


@pytest.mark.parametrize("stop_after", [0, 1, 7, 20, 43])
def test_a_walk_that_is_given_up_leaves_the_cache_usable(stop_after):
    model, ids = opened(), ids_of(n=6)
    fresh, used = model.new_cache(8), model.new_cache(8)
    model.prefill(ids[:5], fresh)
    model.prefill(ids[:5], used)
    for count, _ in enumerate(model.walk(99, used)):
        if count == stop_after:
            break
    assert used.n == 5 and used.ids == ids[:5]
    assert differing(model.decode(ids[5], used), model.decode(ids[5], fresh)) == 0


def test_two_walks_on_one_cache_are_noticed():
    model = opened()
    cache = model.new_cache(8)
    first, second = model.walk(5, cache), model.walk(6, cache)
    next(first)
    next(second)
    with pytest.raises(BadArgument, match="its own cache"):
        list(first)
    list(second)
    assert cache.ids == [6]


def test_a_full_cache_is_refused_at_once():
    model = opened()
    cache = model.new_cache(2)
    model.prefill([1, 2], cache)
    with pytest.raises(ContextFull, match="2"):
        model.walk(3, cache)


@pytest.mark.parametrize("value", [3e38, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["llama_q8_0", "mistral3_f16_yarn_temp", "llama_mix_q4km"])
def test_overflow_and_nan_pass_through_without_warnings(name, value):
    model = opened(name)
    count = len(model.plan())
    for at in range(count):
        cache = model.new_cache(2)
        walk, answer = model.walk([5, 6], cache), None
        with np.errstate(all="raise", under="ignore"):
            for i in range(count):
                step = walk.send(answer)
                answer = np.full(step.value.shape, value, np.float32) if i == at else None
            with pytest.raises(StopIteration):
                walk.send(answer)
        assert cache.n == 2


def test_all_families_and_formats_are_among_the_recordings():
    assert {v.split("_")[0] for v in VARIANTS} == {"llama", "qwen2", "mistral3"}
