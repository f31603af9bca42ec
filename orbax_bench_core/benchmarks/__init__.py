"""Built-in benchmarks, one operation per file."""
