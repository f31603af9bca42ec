"""Benchmarks of my own."""
