"""Past runs for people: in the terminal, and as a page with figures."""
