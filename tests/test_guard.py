"""A notebook that replaces functions, on purpose or not, makes no wrong answer right."""

import builtins
import json
import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synapse_edu.classroom import check, compare, insist, question, tasks, use_class_seed
from synapse_edu.classroom.check import NotRight
from synapse_edu.classroom.plain import Unreadable, pack, plain, same, unpack
from synapse_edu.errors import BadArgument


@pytest.fixture(autouse=True)
def private_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNAPSE_PROGRESS", str(tmp_path / "progress"))
    yield
    use_class_seed(0)


def right_top_k(logits, k):
    return np.argsort(-logits, kind="stable")[:k]


@pytest.mark.parametrize(
    "place, name, value",
    [
        (np, "array", lambda *a, **k: np.zeros(3)),
        (np, "abs", lambda x: 0 * x),
        (np, "isfinite", lambda x: np.ones(1, bool)),
        (np, "sqrt", lambda x: x),
        (math, "exp", lambda x: 1.0),
        (builtins, "abs", lambda x: 0),
        (builtins, "len", lambda x: 3),
        (compare, "compare", lambda *a, **k: compare.Verdict("right", "Right.")),
        (tasks, "compare", lambda *a, **k: compare.Verdict("right", "Right.")),
        (tasks.Task, "judge", lambda *a, **k: compare.Verdict("right", "Right.")),
        (compare.Verdict, "__bool__", lambda self: True),
    ],
)
def test_a_replaced_function_is_named_and_nothing_passes(monkeypatch, place, name, value):
    wrong = lambda logits, k: np.arange(k)  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(place, name, value)
        found, also = check("ex02.top_k", wrong), check("ex02.top_k", right_top_k)
        kept = vars(place)[name]
    assert kept is value  # a check leaves things as it found them
    assert found.status == also.status == "patched"
    assert f"{place.__name__}.{name}" in found.message and "restart the kernel" in found.message
    assert check("ex02.top_k", right_top_k)


def test_a_function_whose_code_was_exchanged_is_noticed():
    code = compare.compare.__code__
    compare.compare.__code__ = (lambda *a, **k: Verdict("right", "Right.")).__code__  # noqa: F821
    try:
        assert check("ex02.top_k", right_top_k).status == "patched"
    finally:
        compare.compare.__code__ = code
    assert check("ex02.top_k", right_top_k).status == "right"


def test_a_name_that_shadows_a_function_in_the_notebook_does_no_harm():
    source = textwrap.dedent("""
        import numpy as np
        from synapse_edu.classroom import check, tasks, compare
        abs = len = sum = type = isinstance = None     # the notebook's own names
        Task = Verdict = find = object
        def top_k(logits, k):
            return np.argsort(-logits, kind="stable")[:k]
        first = check("ex02.top_k", top_k).status
        second = check("ex02.top_k", lambda logits, k: logits).status
    """)
    names = {}
    exec(source, names)
    assert (names["first"], names["second"]) == ("right", "wrong dtype") or names["second"] in (
        "wrong shape",
        "wrong numbers",
    )


def test_numpy_that_was_replaced_before_the_package_was_loaded_is_noticed():
    code = (
        "import numpy as np\n"
        "def mean(x, **k): return 0.0\n"
        "np.mean = mean\n"
        "from synapse_edu.classroom import check\n"
        "print(check('ex02.top_k', lambda z, k: np.argsort(-z, kind='stable')[:k]).status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "patched", done.stderr


class Sly(np.ndarray):
    def __eq__(self, other):
        return True

    def __array_ufunc__(self, ufunc, method, *inputs, **k):
        return np.ones(3, bool)

    def __array_function__(self, *a, **k):
        return np.ones(3, bool)

    def tobytes(self, *a):
        return b""

    __hash__ = None


def test_an_array_that_lies_about_itself_is_read_from_its_memory():
    sly = np.arange(3.0).view(Sly)
    assert type(plain(sly)) is np.ndarray and plain(sly).tolist() == [0, 1, 2]
    assert not tasks.find("ex02.top_k").verdict(lambda z, k: np.zeros(len(z[:k])).view(Sly))


@pytest.mark.parametrize(
    "value",
    [
        object(),
        type("int", (int,), {})(3),
        type("list", (list,), {})([1]),
        np.array([object()]),
        np.array(["a"]),
        {1: 2}.keys(),
        range(3),
        [[[[[[[[1]]]]]]]],
        1 + 2j,
        np.zeros(2, np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else object(),
    ],
)
def test_what_is_no_plain_value_is_unreadable(value):
    found = plain(value)
    while isinstance(found, list):
        (found,) = found
    assert isinstance(found, Unreadable)
    assert tasks.find("ex02.cache").verdict(value).status == "wrong type"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | hnp.arrays(st.sampled_from([np.float32, np.int64, np.bool_, np.float16]),
                 hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner)
    | st.dictionaries(st.text() | st.tuples(st.text(), st.integers()), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(PLAIN)
def test_plain_values_survive_copying_and_travel(value):
    assert same(plain(value), value)
    assert same(unpack(json.loads(json.dumps(pack(value)))), value)


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"array": "AAAA", "dtype": "O", "shape": [1]},
        {"array": "AAAA", "dtype": "<f4", "shape": [9]},
        {"array": "!", "dtype": "<f4", "shape": [1]},
        {"int": "x"},
        {"code": "1"},
        {"list": 3},
        [1],
        3.5,
    ],
)
def test_what_pack_never_wrote_is_refused(packed):
    with pytest.raises(ValueError):
        unpack(packed)


def test_insist_raises_with_one_line(capsys):
    insist("ex02.top_k", right_top_k)
    assert capsys.readouterr().out == "✓ ex02.top_k: Right.\n"
    with pytest.raises(NotRight, match="ex02.top_k") as error:
        insist("ex02.top_k", lambda z, k: np.argsort(z, kind="stable")[:k])
    (line,) = error.value._render_traceback_()
    assert line.startswith("✗ ex02.top_k: On input 0") and "sorted upwards" in line


def test_a_class_seed_changes_questions_and_inputs(capsys):
    book = question("ex10.requests")
    use_class_seed(11)
    mine = question("ex10.requests")
    text = capsys.readouterr().out
    assert book["gib"] == 24 and book["tokens"] == 8192 and mine != book
    assert "24 GiB" in text and f"{mine['gib']} GiB" in text
    one = 2 * mine["layers"] * mine["kv_heads"] * mine["width"] * mine["tokens"]
    assert check("ex10.requests", mine["gib"] * 2**30 // one)
    assert not check("ex10.requests", 38)
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(BadArgument, match="class seed"):
            use_class_seed(wrong)


def test_the_answer_of_the_visible_example_fails_on_other_inputs():
    task = tasks.find("ex02.kv_heads")
    (first, *_) = task.cases(0)
    constant = task.right(*first)
    assert not task.verdict(lambda *_: constant)


def test_the_cause_is_the_mistake_that_fits_every_input():
    # At position 0 several mistakes look alike; over all inputs only one of them does.
    from synapse_edu.classroom.exercises.ex02 import half_split

    verdict = tasks.find("ex02.rope").verdict(half_split)
    assert verdict.cause.startswith("half-split pairs; in a Llama file")
