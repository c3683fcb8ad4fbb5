"""Numbers ↔ bytes: the block formats in which weights are stored."""
