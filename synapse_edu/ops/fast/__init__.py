"""The same operations in Numba, under the same names, with the same bits."""
