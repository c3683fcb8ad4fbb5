"""What the chapters measure."""
