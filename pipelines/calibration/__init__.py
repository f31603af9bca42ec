"""Compares a suite with itself, and says how noisy the place is."""
