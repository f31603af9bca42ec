"""Saves in the background beside saves that block, size by size."""
