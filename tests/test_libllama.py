"""The binding to a given libllama, against a stand-in whose layouts are those of real versions."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from synapse_edu.errors import BadArgument, FileProblem, UnsupportedModel
from synapse_edu.study import libllama
from synapse_edu.study.libllama import LibLlama, Record, context_fields

# llama_context_params as 32-bit words, as far as the enumerations, in three versions
MIDDLE_OF_2025 = [512, 2048, 512, 1, 4, 4, -1, -1, -1, 0, 0]
END_OF_2025 = [512, 2048, 512, 1, 4, 4, -1, -1, -1, -1, 0, 0]
LATE_2026 = [512, 2048, 512, 1, 0, 0, 1, 4, 4, 0, -1, -1, -1, -1, 0, 0]


def record(words):
    params = Record()
    params.as_ints()[: len(words)] = words
    return params


@pytest.mark.parametrize(
    "words, flash", [(MIDDLE_OF_2025, None), (END_OF_2025, 9), (LATE_2026, 13)]
)
def test_fields_are_found_in_every_version(words, flash):
    assert context_fields(record(words)) == (0, flash)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [512, 2048, 512, 1, 4, 4],
        [512, 2048, 512, 1, -1, 4, 4, -1, -1],
        [512, 2048, 512, 1, 4, 4, -1, -1, -1, -1, -1],
        [2**30, 2048, 512, 1, 4, 4, -1, -1, -1],
        [512, 512, 2048, 1, 4, 4, -1, -1, -1],
    ],
)
def test_a_layout_that_is_not_known_is_refused(words):
    with pytest.raises(UnsupportedModel, match="does not know"):
        context_fields(record(words))


class Library:
    """Python functions in the place of libllama's: they keep what they were given."""

    def __init__(self, words=LATE_2026, gpu=False, n_ctx=None, says=None, threads=None):
        self.words, self.gpu, self.takes_n_ctx = words, gpu, n_ctx
        self.says, self.takes_threads = says, threads
        self.batches, self.cut, self.freed, self.model_params = [], [], [], None

    llama_backend_init = staticmethod(lambda: None)
    llama_print_system_info = staticmethod(lambda: b"CPU : AVX2 = 1")
    llama_get_memory = staticmethod(lambda context: 7)

    def llama_log_set(self, callback, _):
        self.log = callback

    def llama_supports_gpu_offload(self):
        return self.gpu

    def llama_model_default_params(self):
        return Record()

    def llama_model_load_from_file(self, path, params):
        self.path, self.model_params = path, params
        if path.endswith(b"bad.gguf"):
            self.log(4, b"bad magic\n", None)
            return None
        return 1

    def llama_context_default_params(self):
        return record(self.words)

    def llama_init_from_model(self, model, params):
        words = list(params.as_ints()[:16])
        self.context_words = words
        self.log(2, self.says or b"flash_attn = disabled\n", None)
        return 2

    def llama_set_n_threads(self, context, n, n_batch):
        self.threads = (n, n_batch)

    def llama_n_threads(self, context):
        return self.takes_threads or self.threads[0]

    def llama_n_ctx(self, context):
        return self.takes_n_ctx or self.context_words[0]

    def llama_n_batch(self, context):
        return 4

    def llama_batch_get_one(self, tokens, n):
        return list(tokens)[:n]

    def llama_decode(self, context, batch):
        self.batches.append(batch)
        return 1 if 99 in batch else 0

    def llama_get_logits_ith(self, context, i):
        return (ctypes.c_float * 3)(0, 1, i)

    def llama_memory_clear(self, memory, data):
        self.cut.append(0)

    def llama_memory_seq_rm(self, memory, sequence, start, end):
        self.cut.append(start)
        return start < 100

    def llama_free(self, context):
        self.freed.append(context)

    def llama_model_free(self, model):
        self.freed.append(model)


@pytest.fixture
def opened(monkeypatch):
    def open_with(library, **options):
        monkeypatch.setattr(libllama, "load_library", lambda path: library)
        return LibLlama("lib", "m.gguf", **{"n_ctx": 64, "n_threads": 2, **options})

    return open_with


def test_batches_rewinding_and_closing(opened):
    library = Library()
    engine = opened(library, flash="off")
    assert library.context_words[0] == 64 and library.context_words[13] == 0
    assert library.threads == (2, 2) and engine.system.startswith("CPU")
    logits = engine.eval([1, 2, 3, 4, 5, 6])
    assert np.array(logits[:3]).tolist() == [0, 1, -1]
    assert library.batches == [[1, 2, 3, 4], [5, 6]] and engine.n == 6
    engine.truncate(3)
    engine.truncate(0)
    assert library.cut == [3, 0] and engine.n == 0
    engine.close()
    engine.close()
    assert library.freed == [2, 1]


def test_the_default_leaves_flash_attention_as_it_is(opened):
    library = Library(says=b"flash_attn = auto\n")
    opened(library, flash="default")
    assert library.context_words[13] == -1
    with pytest.raises(BadArgument, match="flash"):
        opened(library, flash="on")


@pytest.mark.parametrize(
    "library, words",
    [
        (Library(n_ctx=32), "other settings"),
        (Library(says=b"flash_attn            = enabled\n"), "other settings"),
        (Library(threads=1), "2 threads"),
        (Library(words=[1, 2, 3]), "does not know"),
    ],
)
def test_settings_that_were_not_taken_are_refused(opened, library, words):
    with pytest.raises(UnsupportedModel, match=words):
        opened(library, flash="off")


def test_failures_of_the_library_become_sentences(opened, monkeypatch):
    engine = opened(Library())
    with pytest.raises(UnsupportedModel, match="code 1"):
        engine.eval([99])
    with pytest.raises(UnsupportedModel, match="rewind"):
        engine.truncate(100)
    monkeypatch.setattr(libllama, "load_library", lambda path: Library())
    with pytest.raises(FileProblem, match="bad magic"):
        LibLlama("lib", "bad.gguf", 64, 1)


def test_a_build_for_a_gpu_is_given_no_device(opened):
    library = Library(gpu=True)
    opened(library)
    address = library.model_params.words[0]
    assert ctypes.c_void_p.from_address(address).value is None


def test_what_is_no_library_is_refused(tmp_path, monkeypatch):
    with pytest.raises(FileProblem, match="no such library"):
        libllama.find(tmp_path / "libllama.so")
    text = tmp_path / "libllama.so"
    text.write_text("not a library", encoding="utf-8")
    assert libllama.find(tmp_path) == text.resolve()  # a folder stands for the library in it
    with pytest.raises(FileProblem, match="could not be loaded"):
        libllama.load_library(text)
    monkeypatch.setattr(libllama, "find_spec", lambda name: None)
    with pytest.raises(FileProblem, match="not installed"):
        libllama.find("llama-cpp-python")


def test_the_package_llama_cpp_python_is_found_without_importing_it(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libllama.so").touch()
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(libllama, "find_spec", lambda name: spec)
    assert libllama.find("llama-cpp-python") == tmp_path / "lib" / "libllama.so"
    assert "llama_cpp" not in sys.modules


def test_another_library_is_refused():
    numpy_core = np._core._multiarray_umath.__file__  # a real shared library, and another one
    with pytest.raises(UnsupportedModel, match="not libllama"):
        libllama.load_library(numpy_core)
