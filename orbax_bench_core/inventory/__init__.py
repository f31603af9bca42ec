"""Contents of a checkpoint on storage."""
