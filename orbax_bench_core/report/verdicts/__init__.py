"""Verdicts for people: console, Markdown, HTML, and while a comparison runs."""
