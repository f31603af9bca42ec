"""Documents that people read: numbers as text and the look of figures."""
