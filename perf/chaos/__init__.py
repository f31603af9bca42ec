"""Chaos: commands that are disturbed at drawn moments, and what must be left of them."""
