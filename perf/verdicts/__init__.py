"""Real comparisons whose answer is known: saves that are held up by a share of their own time."""
