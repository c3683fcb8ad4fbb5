"""The embedding: one row of the table a token.  Decoding a row takes microseconds in NumPy, so
the twin is the reference itself."""

from ..reference.embedding import embedding

__all__ = ["embedding"]
