"""Our own speed, beside Orbax's own benchmark framework, as paired ratios."""
