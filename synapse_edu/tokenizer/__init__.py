"""Text ↔ token ids."""
