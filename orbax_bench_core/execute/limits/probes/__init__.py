"""One probe per file: each times one thing that the machine does, and nothing else."""
