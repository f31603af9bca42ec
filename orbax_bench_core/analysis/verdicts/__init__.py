"""Paired and unpaired verdicts, advice, words, figures and pages."""
