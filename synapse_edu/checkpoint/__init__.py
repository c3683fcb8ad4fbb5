"""A GGUF file → its configuration, its vocabulary and its weights."""
