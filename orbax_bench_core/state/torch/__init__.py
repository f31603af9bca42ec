"""State of PyTorch checkpoints."""
