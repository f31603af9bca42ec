"""Counts: claims of the form "0 of 200", each trial a command that exits with 0 when it holds."""
