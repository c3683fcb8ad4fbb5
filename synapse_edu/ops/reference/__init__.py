"""The operations in NumPy, one formula a function."""
