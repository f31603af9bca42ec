"""Past runs in the order of time, and when what they measure has changed."""
