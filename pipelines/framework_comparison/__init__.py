"""Says how many times as long one framework takes as another for the same bytes."""
