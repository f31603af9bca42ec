"""What the gate reaches, by simulation and by replay, beside the rules of other tools."""
