"""The orchestrator, which never imports JAX, and the worker, which does."""
