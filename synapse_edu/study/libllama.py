"""llama.cpp as a library that is given: open a model with it, and run prefill and decode.

Its C interface changes between versions.  So this module knows only what has stayed the same:
names of functions, and the first fields of one record.  Records are taken from the library's own
``*_default_params`` and passed back as they came, in a buffer that is larger than any version of
them.  What is changed in one is read back from the library afterwards, and refused if it differs.
"""

import ctypes
import os
import re
from importlib.util import find_spec
from pathlib import Path

from ..errors import BadArgument, FileProblem, UnsupportedModel

PYTHON_PACKAGE = "llama-cpp-python"
NAMES = ("libllama.so", "libllama.dylib", "llama.dll", "libllama.dll")
NEEDED = (
    "llama_backend_init", "llama_log_set", "llama_model_default_params",
    "llama_model_load_from_file", "llama_model_free", "llama_context_default_params",
    "llama_init_from_model", "llama_free", "llama_batch_get_one", "llama_decode",
    "llama_get_logits_ith", "llama_get_memory", "llama_memory_seq_rm", "llama_memory_clear",
    "llama_set_n_threads", "llama_n_threads", "llama_n_ctx", "llama_n_batch",
    "llama_print_system_info", "llama_supports_gpu_offload",
)  # fmt: skip
FLASH_OFF = ("disabled", "off", "0")


class Record(ctypes.Structure):
    """Any record passed by value: 1024 bytes hold each of them in every version so far."""

    _fields_ = [("words", ctypes.c_uint64 * 128)]

    def as_ints(self):
        """The same bytes as 32-bit integers, to read and to write."""
        return (ctypes.c_int32 * 256).from_buffer(self)


LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def find(given):
    """The library that a path, or the word ``llama-cpp-python``, stands for.

    Raises
    ------
    FileProblem
        There is no such file, or that package is not installed.
    """
    if str(given) != PYTHON_PACKAGE:
        path = Path(given).expanduser()
        if path.is_dir():
            path = next((path / name for name in NAMES if (path / name).exists()), path)
        if not path.is_file():
            raise FileProblem(
                f"{given}: there is no such library. Give the path of libllama (.so, .dylib or "
                f".dll), or {PYTHON_PACKAGE} if that package is installed."
            )
        return path.resolve()
    spec = find_spec("llama_cpp")
    if spec is None:
        raise FileProblem(f"{PYTHON_PACKAGE} is not installed in this Python environment.")
    folder = Path(spec.origin).parent
    for place in (folder / "lib", folder):
        for name in NAMES:
            if (place / name).exists():
                return place / name
    raise FileProblem(f"{PYTHON_PACKAGE} is installed, but it has no libllama in it.")


def load_library(path):
    """The library as `ctypes.CDLL`, with the types of the functions used here."""
    path = find(path)
    if hasattr(os, "add_dll_directory"):
        os.add_dll_directory(str(path.parent))
    try:
        lib = _open(path)
    except OSError as error:
        raise FileProblem(f"{path.name} could not be loaded: {error}") from None
    missing = [name for name in NEEDED if not hasattr(lib, name)]
    if missing:
        raise UnsupportedModel(
            f"{path.name} has no function {missing[0]}: it is not libllama, or a version from "
            "before the middle of 2025. Give a newer one."
        )
    _declare(lib)
    return lib


def _open(path):
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # where it does not say where its own parts are, they lie beside it
        for part in ("ggml-base", "ggml-cpu", "ggml-blas", "ggml-metal", "ggml"):
            for beside in sorted(path.parent.glob(f"*{part}.*")):
                try:
                    ctypes.CDLL(str(beside), mode=getattr(ctypes, "RTLD_GLOBAL", 0))
                    break
                except OSError:
                    continue
        return ctypes.CDLL(str(path))


def _declare(lib):
    pointer, i32 = ctypes.c_void_p, ctypes.c_int32
    types = {
        "llama_log_set": (None, [LogCallback, pointer]),
        "llama_model_default_params": (Record, []),
        "llama_context_default_params": (Record, []),
        "llama_model_load_from_file": (pointer, [ctypes.c_char_p, Record]),
        "llama_init_from_model": (pointer, [pointer, Record]),
        "llama_model_free": (None, [pointer]),
        "llama_free": (None, [pointer]),
        "llama_batch_get_one": (Record, [ctypes.POINTER(i32), i32]),
        "llama_decode": (i32, [pointer, Record]),
        "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [pointer, i32]),
        "llama_get_memory": (pointer, [pointer]),
        "llama_memory_clear": (None, [pointer, ctypes.c_bool]),
        "llama_memory_seq_rm": (ctypes.c_bool, [pointer, i32, i32, i32]),
        "llama_set_n_threads": (None, [pointer, i32, i32]),
        "llama_n_threads": (i32, [pointer]),
        "llama_n_ctx": (ctypes.c_uint32, [pointer]),
        "llama_n_batch": (ctypes.c_uint32, [pointer]),
        "llama_print_system_info": (ctypes.c_char_p, []),
        "llama_supports_gpu_offload": (ctypes.c_bool, []),
    }
    for name, (result, arguments) in types.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def context_fields(params):
    """Where the fields lie that are set here: (index of n_ctx, index of flash_attn_type or None).

    A `llama_context_params` begins with n_ctx, n_batch, n_ubatch, n_seq_max.  Further on, three
    enumerations are -1 for "not specified": RoPE scaling, pooling, attention.  A fourth -1 after
    them is flash_attn_type, "auto"; versions without it have flash attention off by default.
    """
    words = list(params.as_ints()[:32])
    n_ctx, n_batch, n_ubatch = words[:3]
    run = re.search("(,-1)+", "".join(f",{w}" if w == -1 else ",x" for w in words))
    length = len(run.group()) // 3 if run else 0
    if not (0 <= n_ctx <= 2**20 and 1 <= n_ubatch <= n_batch <= 2**20 and length in (3, 4)):
        raise UnsupportedModel(
            "This libllama lays out llama_context_params in a way that this program does not know."
        )
    last = [i for i, w in enumerate(words) if w == -1][length - 1]
    return 0, last if length == 4 else None


class LibLlama:
    """One model opened by llama.cpp, with one context.

    Parameters
    ----------
    library : str or Path
        libllama, or ``"llama-cpp-python"``.
    model : str or Path
    n_ctx, n_threads : int
    flash : {"off", "default"}
        Flash attention.

    Attributes
    ----------
    n : int
        Positions used.
    version, system : str
        What the library says about itself, and the instructions it was built for.
    """

    def __init__(self, library, model, n_ctx, n_threads, flash="default"):
        if flash not in ("off", "default"):
            raise BadArgument(f'flash={flash!r}; choose "off" or "default".')
        self.lib, self.log, self.n, self._model, self._context = load_library(library), [], 0, 0, 0
        self._keep = LogCallback(lambda level, text, _: self.log.append(text or b""))
        self.lib.llama_log_set(self._keep, None)
        self.lib.llama_backend_init()
        _find_backends(self.lib)
        self._model = self.lib.llama_model_load_from_file(os.fsencode(model), self._model_params())
        if not self._model:
            raise FileProblem(f"{model}: llama.cpp could not load it. {self._said()}")
        self._open_context(n_ctx, n_threads, flash)

    @property
    def version(self):
        if not hasattr(self.lib, "llama_version"):
            return "a version that does not name itself"
        self.lib.llama_version.restype = ctypes.c_char_p
        return self.lib.llama_version().decode("utf-8", "replace")

    @property
    def system(self):
        return self.lib.llama_print_system_info().decode("utf-8", "replace").strip()

    def _model_params(self):
        """The defaults; with a build that could use a GPU, no device but the processor."""
        params = self.lib.llama_model_default_params()
        if self.lib.llama_supports_gpu_offload():
            if params.words[0]:
                raise UnsupportedModel(
                    "This libllama was built for a GPU in a way that this program cannot switch "
                    "off. Give one built for the processor alone."
                )
            self._devices = ctypes.c_void_p(None)  # a list that ends at once
            params.words[0] = ctypes.addressof(self._devices)
        return params

    def _open_context(self, n_ctx, n_threads, flash):
        lib, params = self.lib, self.lib.llama_context_default_params()
        at_n_ctx, at_flash = context_fields(params)
        words = params.as_ints()
        words[at_n_ctx] = n_ctx
        if flash == "off" and at_flash is not None:
            words[at_flash] = 0
        del self.log[:]
        self._context = lib.llama_init_from_model(self._model, params)
        if not self._context:
            raise UnsupportedModel(f"llama.cpp could not make a context. {self._said()}")
        lib.llama_set_n_threads(self._context, n_threads, n_threads)
        self.n_batch = lib.llama_n_batch(self._context)
        said = re.search(rb"flash_attn\s*=\s*(\w+)", b"".join(self.log))
        wrong = flash == "off" and said and said.group(1).decode() not in FLASH_OFF
        if lib.llama_n_ctx(self._context) < n_ctx or wrong:
            raise UnsupportedModel("This libllama took other settings than it was given.")
        if lib.llama_n_threads(self._context) != n_threads:
            raise UnsupportedModel(f"This libllama does not run {n_threads} threads.")

    def _said(self):
        lines = b"".join(self.log).decode("utf-8", "replace").strip().splitlines()
        return f"It said: {lines[-1]}" if lines else ""

    def eval(self, ids):
        """Put ids at the next positions, in batches of the library's own size; the last row's
        logits as a pointer to float32."""
        for start in range(0, len(ids), self.n_batch):
            part = ids[start : start + self.n_batch]
            tokens = (ctypes.c_int32 * len(part))(*part)
            code = self.lib.llama_decode(
                self._context, self.lib.llama_batch_get_one(tokens, len(part))
            )
            if code:
                raise UnsupportedModel(f"llama_decode failed with code {code}. {self._said()}")
            self.n += len(part)
        return self.lib.llama_get_logits_ith(self._context, -1)

    def truncate(self, n):
        """Forget every position from `n` on."""
        memory = self.lib.llama_get_memory(self._context)
        if n == 0:
            self.lib.llama_memory_clear(memory, False)
        elif not self.lib.llama_memory_seq_rm(memory, 0, n, -1):
            raise UnsupportedModel("This libllama cannot rewind its cache.")
        self.n = n

    def close(self):
        """Give the memory back."""
        if self._context:
            self.lib.llama_free(self._context)
        if self._model:
            self.lib.llama_model_free(self._model)
        self._context = self._model = 0


def _find_backends(lib):
    """Builds whose processor code is a library of its own must be told to look for it."""
    count = getattr(lib, "ggml_backend_dev_count", None)
    load_all = getattr(lib, "ggml_backend_load_all", None)
    if count is None or load_all is None:
        return
    count.restype = ctypes.c_size_t
    if count() == 0:
        load_all.restype = None
        load_all()
