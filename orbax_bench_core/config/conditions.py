"""The conditions that a measurement is taken under, and that are part of what it is."""

from __future__ import annotations

from typing import Literal

from orbax_bench_core.config.model import ConfigModel

Cache = Literal["warm", "cold"]
HostMemory = Literal["reused", "fresh", "default"]


class Conditions(ConfigModel):
    """What is controlled while a sweep point is measured.

    Attributes:
        cache: Whether a checkpoint's pages are in the page cache when a load begins.
        host_memory: Whether the worker's allocator keeps freed memory (`reused`), gives it back at
            once (`fresh`), or does as the C library pleases (`default`). On virtual machines that
            back memory lazily this moves a load by a factor of four.
        durable: Whether a save also counts until all its files are on stable storage.
        x64: Whether JAX has 64-bit types, as in Orbax's own framework.
    """

    cache: Cache = "warm"
    host_memory: HostMemory = "reused"
    durable: bool = False
    x64: bool = True
