"""What is checkpointed: synthetic pytrees, meshes, shardings, digests."""
