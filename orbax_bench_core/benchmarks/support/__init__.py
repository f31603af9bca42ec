"""Parts that several built-in benchmarks share."""
