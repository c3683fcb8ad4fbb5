"""The fast backend: llama.cpp's bits and the reference's, whatever the threads and the batches."""

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache as remember
from pathlib import Path

import numpy as np
import pytest
from golden_data import FORWARD, VARIANTS, arrays, differing

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull
from synapse_edu.model import fast, fast_memory
from synapse_edu.model import fast_table as T
from synapse_edu.model.llama import Llama
from synapse_edu.ops.fast import threads
from synapse_edu.study.tiny import random_model, tiny_config

ALL = sorted(VARIANTS)
# One of each: float and block formats, biases, YaRN with temperature, factors, many heads.
SOME = ["llama_f32_ropefreqs", "llama_mix_q4km", "mistral3_f16_yarn_temp", "qwen2_q8_0"]
SERVED = [
    se.Numerics.named(name).replace(cache=cache)
    for name in fast.SERVED
    for cache in ("float16", "float32")
]


@remember
def opened(name, backend="fast", n_threads=2, numerics="llama.cpp"):
    return se.load(
        FORWARD / f"{name}.gguf", numerics=numerics, backend=backend, n_threads=n_threads
    )


def run(model, ids, sizes, cache=None):
    """Logits of every position, the ids cut into parts of these sizes; 0 is a single token."""
    cache, out, at = model.new_cache(len(ids) + 3) if cache is None else cache, [], 0
    for size in sizes:
        if size == 0:
            out.append(model.decode(ids[at], cache)[None])
        else:
            out.append(model.prefill(ids[at : at + size], cache, logits="all"))
        at += max(size, 1)
    return np.concatenate(out), cache


def same_cache(a, b):
    n = a.n
    return a.ids == b.ids and all(
        x[:, :, :n].tobytes() == y[:, :, :n].tobytes() for x, y in ((a.k, b.k), (a.v, b.v))
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_recorded_logit(name, n_threads):
    want, model = arrays(name), opened(name, n_threads=n_threads)
    assert isinstance(model.backend, fast.Fast)
    ids = want["tokens"].tolist()
    for sizes in ([0] * len(ids), [len(ids)], VARIANTS[name]["chunk_sizes"]):
        got, _ = run(model, ids, sizes)
        assert differing(got[want["logit_pos"]], want["scalar.step"]) == 0


@pytest.mark.parametrize("numerics", SERVED, ids=lambda n: f"{n.name}-{n.cache}")
@pytest.mark.parametrize("name", SOME)
def test_the_bits_of_the_reference(name, numerics):
    ids = np.random.default_rng(5).integers(0, opened(name).config.n_vocab, 27).tolist()
    want, kept = run(opened(name, "reference", None, numerics), ids, [8, 8, 1, 0, 0, 8])
    for n_threads, sizes in ((1, [27]), (3, [1, 2, 0, 5, 0, 0, 11, 6])):
        got, cache = run(opened(name, "fast", n_threads, numerics), ids, sizes)
        assert differing(got, want) == 0
        assert same_cache(cache, kept)


def test_prompts_longer_than_a_batch_and_only_the_wanted_rows():
    model = opened("llama_q4_k")
    ids = np.random.default_rng(6).integers(0, model.config.n_vocab, 150).tolist()
    want, kept = run(opened("llama_q4_k", "reference", None), ids, [150])
    for rows in ([149], [0, 63, 64, 149], [-1, 5, 5], "last"):
        cache = model.new_cache(150)
        got = model.prefill(ids, cache, logits=rows)
        assert differing(got, want[-1] if rows == "last" else want[rows]) == 0
        assert same_cache(cache, kept)
    assert model.prefill(ids, model.new_cache(150), logits=[]).shape == (0, model.config.n_vocab)


def test_a_cache_goes_from_one_backend_to_the_other_and_back():
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    quick, slow = opened("llama_q8_0"), opened("llama_q8_0", "reference", None)
    want, kept = run(slow, ids, [8])
    cache = quick.new_cache(11)
    quick.prefill(ids[:3], cache)
    steps = [step for id in ids[3:5] for step in quick.walk(id, cache)]  # always the reference
    assert differing(steps[-1].value, want[4]) == 0
    slow.prefill(ids[5:7], cache)
    cache.truncate(5)
    quick.prefill(ids[5:7], cache)
    assert differing(quick.decode(ids[7], cache), want[7]) == 0 and same_cache(cache, kept)
    with pytest.raises(ContextFull):
        quick.prefill([1] * 4, cache)
    assert cache.n == 8


def test_generation_is_the_same_text():
    prompt = [1, 7, 20]
    texts = []
    for backend in ("reference", "fast"):
        sampler = se.Sampler(temperature=0.9, top_p=0.9, seed=3)
        model = opened("llama_q6_k", backend, None)
        texts.append([t.id for t in model.generate(prompt, 20, sampler, stop=False)])
    assert texts[0] == texts[1]


def test_an_interruption_leaves_a_cache_that_can_be_used(monkeypatch):
    model, ids = opened("llama_q4_0"), [i % 50 for i in range(200)]
    cache, calls = model.new_cache(210), []
    model.prefill(ids[:10], cache)
    begin = model.backend.team.run

    def interrupted(*arguments):
        calls.append(1)
        begin(*arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model.backend.team, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.prefill(ids[10:], cache)
    assert cache.n == 10
    got = model.prefill(ids[10:], cache)
    want, kept = run(opened("llama_q4_0", "reference", None), ids, [10, 190])
    assert differing(got, want[-1]) == 0 and same_cache(cache, kept)


def test_a_team_finishes_what_it_began_before_it_lets_an_interruption_through():
    done, team = [], threads.Team(2)

    def work(argument, number):
        time.sleep(0.3)
        done.append((argument, number))

    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt), team.alone():
        team.run(work, "x")
        team.run(work, "never")
    assert sorted(done) == [("x", 0), ("x", 1)]
    with team.alone():
        team.run(work, "y")  # nothing is left over from the call before
    assert sorted(done)[2:] == [("y", 0), ("y", 1)]


def test_an_error_on_one_thread_is_raised_by_the_caller():
    def work(argument, number):
        if number == 1:
            raise ValueError(argument)

    team = threads.Team(2)
    with pytest.raises(ValueError, match="wrong"), team.alone():
        team.run(work, "wrong")


def test_an_interruption_while_a_larger_cache_gets_room_leaves_the_room_there_was(monkeypatch):
    model, want = se.load(FORWARD / "llama_q8_0.gguf", backend="fast", n_threads=2), None
    ids = arrays("llama_q8_0")["tokens"].tolist()
    want = model.prefill(ids, model.new_cache(64), logits="all")
    for moment in range(8):  # at each of the steps that make room
        count = iter(range(100))

        def stop_at(original, moment=moment, count=count):
            def step(*args):
                if next(count) == moment:
                    raise KeyboardInterrupt
                return original(*args)

            return step

        with monkeypatch.context() as patched:
            patched.setattr(fast_memory, "_zeroed", stop_at(fast_memory._zeroed))
            patched.setattr(fast_memory.Memory, "_put", stop_at(fast_memory.Memory._put))
            large = model.new_cache(5000 + moment)
            try:
                model.prefill(ids, large)
            except KeyboardInterrupt:
                assert large.n == 0
        got = model.prefill(ids, model.new_cache(64), logits="all")
        assert differing(got, want) == 0
        memory = model.backend._memory
        n = 4 * model.config.n_head_kv * memory._n_rows * int(memory.table[T.S_STRIDE])
        assert memory._kept[T.SCORES].nbytes >= n


def test_python_threads_on_one_cache_never_write_beyond_its_end():
    model = opened("llama_mix_q4km")
    cache, beyond, full = model.new_cache(12), [], []
    run_pass = model.backend._pass

    def watched(ids, cache, position, wanted):
        beyond.extend([position] if position + len(ids) > cache.n_ctx else [])
        return run_pass(ids, cache, position, wanted)

    def decode():
        for _ in range(60):
            try:
                model.decode(1, cache)
            except ContextFull:
                full.append(1)
                cache.truncate(min(cache.n, 8))
            except BadArgument:  # truncated, or the last position went to another thread
                pass

    model.backend._pass = watched
    try:
        workers = [threading.Thread(target=decode) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        del model.backend._pass
    assert full and not beyond


def test_matrices_without_names_are_told_apart():
    config = tiny_config("qwen2")
    made = random_model(config, seed=3, format="Q8_0")
    fast_one, other = (
        Llama(config, made.weights, backend=backend) for backend in ("fast", "reference")
    )
    got, want = (m.prefill([1, 2, 3], m.new_cache(8), logits="all") for m in (fast_one, other))
    assert differing(got, want) == 0


def test_two_python_threads_take_turns():
    model, ids = opened("llama_q5_1"), list(range(1, 40))
    want, _ = run(opened("llama_q5_1", "reference", None), ids, [39])
    wrong = []

    def use():
        for _ in range(4):
            got, _ = run(model, ids, [17, 0, 0, 20])
            wrong.append(differing(got, want))

    users = [threading.Thread(target=use) for _ in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert wrong == [0] * 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes otherwise")
def test_a_forked_child_makes_threads_of_its_own():
    model, ids = opened("llama_q4_1"), [1, 2, 3, 4]
    want, _ = run(model, ids, [4])
    child = os.fork()
    if child == 0:
        got, _ = run(model, ids, [2, 0, 0])
        os._exit(differing(got, want) != 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes otherwise")
def test_a_child_forked_from_the_middle_of_a_pass_does_not_wait_for_its_parents_threads():
    model, ids = opened("llama_q4_1"), [1, 2, 3, 4]
    want, _ = run(model, ids, [4])
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        model.backend._memory.place[0] = 1  # as if another thread had been waiting at the time
        got, _ = run(model, ids, [2, 0, 0])
        os._exit(differing(got, want) != 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True, "2", 257])
def test_threads_that_cannot_be(n_threads):
    with pytest.raises(BadArgument, match="n_threads"):
        se.load(FORWARD / "llama_q4_0.gguf", backend="fast", n_threads=n_threads)


def test_numerics_that_it_does_not_compute_run_on_the_reference(capsys):
    path = FORWARD / "llama_q4_0.gguf"
    model = se.load(path, numerics="llama.cpp-avx2", backend="fast")
    said = capsys.readouterr()
    assert model.backend.name == "reference"
    assert "'llama.cpp-avx2'" in said.err and said.err.count("\n") == 1 and not said.out
    assert se.load(path, numerics="llama.cpp-avx2").backend.name == "reference"
    assert capsys.readouterr().err == ""  # nobody asked for it
    mixed = se.Numerics.named("llama.cpp").replace(q="float32")
    assert not fast.serves(mixed) and all(map(fast.serves, SERVED))


def test_a_tiny_model_runs_on_the_reference_unless_asked():
    path = FORWARD / "llama_q4_0.gguf"
    assert se.load(path).backend.name == "reference"
    model = se.load(path, backend="fast", n_threads=1)
    assert model.with_numerics("textbook").backend.name == "fast"
    assert model.with_numerics("textbook").backend.team.n_threads == 1


# --- other processors --------------------------------------------------------------------------
GENERIC = """
import sys
sys.path.insert(0, sys.argv[1])
import test_fast_backend as t
from synapse_edu.ops.fast.jit import has_avx2
assert not has_avx2()
for name in ("llama_q4_k", "llama_f16"):
    want = t.arrays(name)
    got, _ = t.run(t.opened(name), want["tokens"].tolist(), t.VARIANTS[name]["chunk_sizes"])
    assert t.differing(got[want["logit_pos"]], want["scalar.step"]) == 0
    got, _ = t.run(t.opened(name), want["tokens"].tolist(), [0] * len(want["tokens"]))
    assert t.differing(got[want["logit_pos"]], want["scalar.step"]) == 0
"""


def test_the_same_bits_without_avx2():
    environment = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-c", GENERIC, str(Path(__file__).parent)],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
