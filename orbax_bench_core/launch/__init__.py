"""Where a worker runs."""
