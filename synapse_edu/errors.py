"""Every refusal of this package: what is wrong with the input, and what to do about it.

A message says three things in plain words: which input (file, key, tensor, argument), what is
wrong with it, and the next thing to try.  In a notebook only that message is shown, because a
traceback through our modules would not help a reader whose file is cut short.
"""

import difflib


def did_you_mean(name, known):
    """`` Did you mean 'smollm2'?`` if `name` is nearly one of the `known` ones, else nothing."""
    near = difflib.get_close_matches(str(name), known, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


class SynapseError(Exception):
    """Base of all errors that this package raises on purpose."""

    def _render_traceback_(self):
        """Lines that IPython prints in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class FileProblem(SynapseError):
    """A model file that is damaged, cut short, or not what it claims to be."""


class UnsupportedModel(SynapseError):
    """A sound file that holds something this package does not compute."""


class TokenizerProblem(SynapseError):
    """A vocabulary that cannot be used, or text that it cannot take."""


class ContextFull(SynapseError):
    """More tokens than the context holds."""


class BadArgument(SynapseError, ValueError):
    """An argument outside its range, or of the wrong kind or shape."""


class DownloadProblem(SynapseError):
    """A model could not be fetched, or what arrived is not what was asked for."""
