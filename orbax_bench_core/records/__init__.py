"""Records, the run directory, the samples table and the read model."""
