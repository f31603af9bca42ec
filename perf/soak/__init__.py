"""Soaks whose answer is known: simulated series, and real ones with a leak planted or not."""
