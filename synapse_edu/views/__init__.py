"""Pictures of a computation: pure render functions, and thin widgets that choose what to render."""
