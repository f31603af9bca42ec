"""Median, spread and straggler per point and operation."""
