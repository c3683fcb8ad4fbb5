"""From a file to a model, or to its tokenizer."""

from ..checkpoint import catalogue
from ..checkpoint.container import open_container
from ..checkpoint.hparams import config_from_metadata
from ..checkpoint.weights import load_weights
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary
from .llama import Llama


def load(path=None, numerics="llama.cpp", backend=None, n_ctx=None, n_threads=None):
    """Open a model.

    Parameters
    ----------
    path : path or str, optional
        A GGUF file, the first of its shards, or a name from ``models()``.  None takes the
        environment variable SYNAPSE_MODEL, or else the built-in model.
    numerics : str or Numerics
        ``"llama.cpp"``, ``"textbook"``, ``"synapse"``, ``"llama.cpp-avx2"``, or a record.
    backend : {"reference", "fast"}, optional
    n_ctx : int, optional
        Positions of a new cache; None takes the smaller of the model's context and 4096.
    n_threads : int, optional
        Threads of the fast backend; None takes all.

    Returns
    -------
    Llama

    Raises
    ------
    FileProblem
        The file is damaged, cut short, or not GGUF.
    UnsupportedModel
        The file is sound, and holds a model that this package does not compute.
    """
    container = open_container(catalogue.resolve(path))
    config = config_from_metadata(container.metadata, container.tensors)
    weights = load_weights(container, config)
    return Llama(
        config,
        weights,
        metadata=container.metadata,
        numerics=numerics,
        backend=backend,
        n_ctx=n_ctx,
        n_threads=n_threads,
        name=config.name or container.path.name,
    )


def load_tokenizer(path):
    """The tokenizer of a GGUF file, which may hold a vocabulary and no weights."""
    container = open_container(catalogue.resolve(path))
    return Tokenizer(Vocabulary.from_metadata(container.metadata))
