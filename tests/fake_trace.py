"""A small stand-in for a recorded walk, with known numbers; no model file is needed."""
