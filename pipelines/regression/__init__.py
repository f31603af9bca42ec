"""Compares a candidate with a baseline and fails on a regression."""
