"""Built-in benchmarks, one per file."""
