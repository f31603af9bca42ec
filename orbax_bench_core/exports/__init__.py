"""Exports: results in the formats of other programs."""
