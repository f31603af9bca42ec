"""Figures of the gate, by simulation and by replay, beside the rules of other tools."""
