"""Checks, hints and editions of the exercises."""

from .check import check, hint, progress

__all__ = ["check", "hint", "progress"]
