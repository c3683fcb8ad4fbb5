"""Checks, hints and editions of the exercises."""
