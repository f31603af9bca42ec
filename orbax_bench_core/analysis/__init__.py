"""Analyses of records: one room per question."""
