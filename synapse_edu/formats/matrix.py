"""Matrix: the bytes of one weight matrix, as they lie in the file.

Operations take a `Matrix`, never a file.  The bytes stay where the file's memory map has them;
nothing is decoded until an operation asks for rows.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from .decode import decode
from .layout import row_bytes


@dataclass(frozen=True, eq=False)
class Matrix:
    """One weight matrix in a block format.

    Attributes
    ----------
    raw : ndarray of uint8, shape (n_out, bytes per row)
        Read-only view of the rows' bytes, little-endian.
    format : str
        Name of the block format, such as ``"Q4_K"``.
    n_in : int
        Elements per row.  A GGUF file lists this dimension first.
    name : str
        The tensor's name in the file, for messages.
    """

    raw: np.ndarray
    format: str
    n_in: int
    name: str = "?"

    def __post_init__(self):
        if self.raw.shape[-1] != row_bytes(self.format, self.n_in):
            raise BadArgument(
                f"{self.name}: {self.raw.shape[-1]} bytes a row, but {self.n_in} elements of "
                f"{self.format} take {row_bytes(self.format, self.n_in)}."
            )

    @property
    def n_out(self):
        return self.raw.shape[0]

    @property
    def shape(self):
        """(n_out, n_in)"""
        return self.raw.shape[0], self.n_in

    @property
    def nbytes(self):
        return self.raw.nbytes

    def rows(self, index=slice(None)):
        """Rows as float32, shape (rows, n_in); `index` is anything that selects rows."""
        return decode(self.raw[index], self.format)

    @classmethod
    def from_float32(cls, x, format="F32", name="?"):
        """Encode a float32 array (n_out, n_in) into `format`."""
        from .encode import encode

        x = np.ascontiguousarray(x, np.float32)  # (n_out, n_in)
        return cls(encode(x, format), format, x.shape[1], name)
