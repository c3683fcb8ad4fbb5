"""Fast matrix products against the reference, by bits: formats, modes, shapes, edge values."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.formats.layout import FORMATS
from synapse_edu.formats.matrix import Matrix
from synapse_edu.numerics import Numerics
from synapse_edu.ops.fast import jit
from synapse_edu.ops.fast.matmul import matmul
from synapse_edu.ops.reference.matmul import matmul as reference

PRESETS = ("llama.cpp", "synapse", "textbook")
F32 = np.float32
EDGES = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1e-38, 3e-39, 1e30, -1e30, 3e38, 127.5, 0.5, 65520.0, 1 / 3], F32
)

pytestmark = pytest.mark.filterwarnings("error")


def same(got, want):
    """Whether two float32 arrays have the same bits; any NaN equals any NaN."""
    nan = np.isnan(want)
    equal = got.view(np.uint32) == want.view(np.uint32)
    return got.shape == want.shape and bool(np.all(np.where(nan, np.isnan(got), equal)))


def random_weights(name, n_out, n_in, rng, wild=False):
    """Random bytes: every code occurs.  Scales are modest, or of any bits at all if `wild`."""
    known = FORMATS[name]
    if known.is_float:
        x = rng.standard_normal((n_out, n_in)).astype(F32)  # (n_out, n_in)
        if wild:
            x[:, rng.integers(0, n_in, 3)] = rng.choice(EDGES, (n_out, 3))
        with np.errstate(over="ignore"):
            return Matrix.from_float32(x, name)
    raw = rng.integers(0, 256, (n_out, n_in // known.block * known.nbytes), dtype=np.uint8)
    if not wild:
        for field in {"d", "dmin", "m"} & set(known.dtype.names):
            scales = raw.view(known.dtype)[field]
            scales[...] = rng.standard_normal(scales.shape) * 0.01
        if name == "MXFP4":
            raw.view(known.dtype)["e"] = rng.integers(110, 130, (n_out, n_in // 32, 1))
    return Matrix(raw, name, n_in)


def random_rows(n, n_in, rng, wild=False):
    x = rng.standard_normal((n, n_in)).astype(F32)  # (n, n_in)
    if wild:
        at = rng.random(x.shape) < 0.05
        x[at] = rng.choice(EDGES, int(at.sum()))
        x[rng.integers(0, n), :256] = 0
    return x


def width(name, n_block):
    """A row width for the format: whole blocks, or an odd number for floats."""
    known = FORMATS[name]
    return 32 * n_block + 5 if known.is_float else known.block * n_block


def differences(cases):
    """The cases whose products differ: (format, preset, n_out, n_block, n, seed, wild) each."""
    wrong = []
    for case in cases:
        name, preset, n_out, n_block, n, seed, wild = case
        rng = np.random.default_rng(seed)
        n_in = width(name, n_block)
        weight, x = random_weights(name, n_out, n_in, rng, wild), random_rows(n, n_in, rng, wild)
        numerics = Numerics.named(preset)
        if not same(matmul(weight, x, numerics), reference(weight, x, numerics)):
            wrong.append(case)
    return wrong


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(PRESETS),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 70),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
@example("Q4_K", "llama.cpp", 16, 2, 64, 0, True)
@example("Q4_1", "llama.cpp", 9, 3, 65, 1, True)
def test_same_bits_as_the_reference(name, preset, n_out, n_block, n, seed, wild):
    assert differences([(name, preset, n_out, n_block, n, seed, wild)]) == []


GRID = [
    (name, preset, n_out, n_block, n, 7, wild)
    for name in FORMATS
    for preset in PRESETS
    for n_out, n_block, n in ((8, 1, 1), (21, 3, 1), (19, 2, 5), (8, 4, 37))
    for wild in (False, True)
]
# Decoded weights meet float32 in the same loops whatever the format: three stand for all.
GENERIC = [c for c in GRID if c[1] == "llama.cpp" or c[0] in ("F16", "Q5_1", "Q6_K")]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_and_mode(name):
    assert differences([case for case in GRID if case[0] == name]) == []


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_the_same_products(name, bad):
    rng = np.random.default_rng(3)
    n_in = width(name, 2)
    weight, x = random_weights(name, 10, n_in, rng), random_rows(4, n_in, rng)
    x[1, 7] = x[3, n_in - 1] = bad
    x[3, 0] = 1e30
    for preset in PRESETS:
        numerics = Numerics.named(preset)
        with np.errstate(all="ignore"):
            want = reference(weight, x, numerics)
        assert same(matmul(weight, x, numerics), want), preset
        assert not np.isfinite(want[1]).any() and np.isfinite(want[0]).all()


def test_generic_code_gives_the_same_bits(tmp_path):
    """Without AVX2, as on ARM: the same grid in a process that compiles for a generic processor."""
    script = "import test_fast_matmul as t; print(t.jit.has_avx2(), t.differences(t.GENERIC))"
    env = dict(os.environ, NUMBA_CPU_NAME="generic", PYTHONPATH=str(Path(__file__).parent))
    env.pop("NUMBA_CPU_FEATURES", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.stdout.strip() == "False []", done.stderr


def test_a_product_needs_rows_of_the_right_width():
    weight = random_weights("Q8_0", 4, 64, np.random.default_rng(0))
    with pytest.raises(BadArgument, match="rows of 64 numbers"):
        matmul(weight, np.zeros((2, 32), F32), Numerics.named("llama.cpp"))


def test_numerics_without_kernels_are_refused():
    weight = random_weights("Q8_0", 4, 64, np.random.default_rng(0))
    with pytest.raises(BadArgument, match="backend='reference'"):
        matmul(weight, np.zeros((2, 64), F32), Numerics.named("llama.cpp-avx2"))


def test_no_tokens_give_no_rows():
    weight = random_weights("Q4_K", 4, 256, np.random.default_rng(0))
    assert matmul(weight, np.zeros((0, 256), F32), Numerics.named("llama.cpp")).shape == (0, 4)


# --- the compile cache ----------------------------------------------------------------------------
ONE = (
    "import test_fast_matmul as t; "
    "print(t.differences([('Q8_0', 'llama.cpp', 8, 1, 1, 0, False)]), t.jit.cache_folder())"
)


FIRST = "Compiling the fast code, once: about 20 s.\n"
AGAIN = "Compiling what this model needs, once: some seconds.\n"
ALWAYS = (
    "Compiling the fast code: about 20 s at every start, for no folder can be written to keep it.\n"
)


def run_one(env, announced, before=""):
    """What `ONE` prints in a process of its own, which announces that it compiles, and no more."""
    path = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + ONE],
        env=dict(os.environ, PYTHONPATH=path, **env),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    said = done.stderr.removeprefix(announced)
    assert done.returncode == 0 and said == "" and (said != done.stderr or not announced), said
    return done.stdout.strip()


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_compiled_code_is_kept_where_only_its_owner_can_write(tmp_path):
    printed = run_one({"NUMBA_CACHE_DIR": str(tmp_path)}, FIRST)
    assert run_one({"NUMBA_CACHE_DIR": str(tmp_path)}, "") == printed
    folder = Path(printed.removeprefix("[] "))
    assert folder.is_relative_to(tmp_path) and len(list(folder.iterdir())) >= 4
    for part in (folder, folder.parent):
        assert part.stat().st_mode & 0o777 == 0o700
    for damaged in folder.iterdir():
        damaged.write_bytes(b"not code")
    old, recent = folder.parent / ("0" * 32), folder.parent / ("1" * 32)
    not_ours = [folder.parent / "somebody's", tmp_path / ("2" * 32)]
    for other, days in ((old, 100), (recent, 7), *((path, 100) for path in not_ours)):
        other.mkdir()
        os.utime(other, (time.time() - 86_400 * days,) * 2)
    assert run_one({"NUMBA_CACHE_DIR": str(tmp_path)}, AGAIN) == printed
    assert recent.exists() and not old.exists()
    assert all(path.exists() for path in not_ours)


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_no_code_is_kept_below_a_folder_that_others_may_change(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    private = {"XDG_CACHE_HOME": str(tmp_path / "private")}
    printed = run_one(private | {"NUMBA_CACHE_DIR": str(open_to_all)}, FIRST)
    assert printed.startswith("[] ") and str(open_to_all) not in printed
    open_to_all.chmod(0o1777)  # as /tmp: nobody can replace what another has put there
    assert str(open_to_all) in run_one({"NUMBA_CACHE_DIR": str(open_to_all)}, FIRST)


def test_works_where_no_folder_can_be_written(tmp_path):
    """A file stands where each folder would be: nothing can be created, not even by root."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    before = (
        "import pathlib, tempfile, platformdirs; "
        f"tempfile.tempdir = {str(blocked)!r}; "
        f"platformdirs.user_cache_path = lambda *a, **k: pathlib.Path({str(blocked)!r}); "
    )
    assert run_one({"NUMBA_CACHE_DIR": str(blocked)}, ALWAYS, before) == "[] None"


def test_the_key_depends_on_the_sources_and_the_processor(monkeypatch, tmp_path):
    keys = {jit.source_key()}
    monkeypatch.setattr(jit, "cpu", lambda: ("another", "+features"))
    keys.add(jit.source_key.__wrapped__())
    (tmp_path / "ops").mkdir()
    monkeypatch.setattr(jit, "PACKAGE", tmp_path)
    for text in ("a = 1", "a = 2"):
        (tmp_path / "ops" / "x.py").write_text(text, encoding="utf-8")
        keys.add(jit.source_key.__wrapped__())
    assert len(keys) == 4
