"""Checks, hints and editions of the exercises."""

from . import guard, tasks
from .check import check, hint, insist, progress, question, solution, use_class_seed

__all__ = ["check", "hint", "insist", "progress", "question", "solution", "use_class_seed"]

tasks.load()
guard.remember()
