"""Built-in benchmarks, one file per family."""
