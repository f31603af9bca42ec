"""Inputs that nobody meant, through the doors that take them: `python -m tests.support.fuzz`."""
