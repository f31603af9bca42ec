"""The process that measures, in any environment."""
