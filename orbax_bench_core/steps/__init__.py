"""Steps of a run: planning, point, comparison, report, release search."""
