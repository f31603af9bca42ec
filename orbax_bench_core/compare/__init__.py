"""Comparing runs point by point."""
