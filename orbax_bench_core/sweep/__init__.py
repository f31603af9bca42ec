"""From a suite to sweep points with stable ids."""
