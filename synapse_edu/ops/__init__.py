"""Each operation of the forward pass: once in NumPy to be read, once in Numba to be used."""
