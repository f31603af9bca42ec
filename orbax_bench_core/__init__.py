"""Measure checkpoint operations over sweeps of options, meshes, checkpoints and environments."""
