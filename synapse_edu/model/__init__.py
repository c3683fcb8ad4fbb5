"""Token ids → logits → the next id."""
