"""The tasks of the exercises, one module a chapter; the notebooks are in ``exercises/``."""
