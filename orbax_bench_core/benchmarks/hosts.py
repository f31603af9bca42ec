"""Waiting for the other host processes."""

from __future__ import annotations


def await_all_hosts(name: str) -> None:
    """Returns once every process has called; at once in a single process.

    Args:
        name: What is waited for; the same in every process.
    """
    import jax

    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)
