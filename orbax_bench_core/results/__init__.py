"""Records of repeats, the run directory that holds them, and their aggregation."""
