"""What a context switch costs: measure it, and read what was measured."""
