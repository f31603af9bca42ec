"""Pathways from outside: whether its proxy is there, before a worker waits for it."""

from __future__ import annotations

import importlib.util
import re
import socket
import time
from collections.abc import Mapping

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import on_pathways

_TARGET = "JAX_BACKEND_TARGET"
_PATIENCE = "PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS"
_WAIT_S = 10.0
_POLL_S = 0.5
_TARGET_FORM = re.compile(r"(?:grpc://)?\[?([^\]/]+?)\]?:(\d+)/?")


def check_proxy(environment: Mapping[str, str], within_s: float | None = None) -> None:
    """Checks that what JAX needs on Pathways is there; elsewhere it does nothing."""
    if not on_pathways(environment):
        return
    platforms, target = environment["JAX_PLATFORMS"], environment.get(_TARGET, "")
    found = _TARGET_FORM.fullmatch(target)
    if found is None:
        given = f"is {target!r}" if target else "is not set"
        raise UserError(
            f"JAX_PLATFORMS={platforms} is Pathways, and {_TARGET} {given}: give the address of "
            "its proxy, such as grpc://127.0.0.1:29000, or another JAX_PLATFORMS"
        )
    if importlib.util.find_spec("pathwaysutils") is None:
        raise UserError(
            f"JAX_PLATFORMS={platforms} is Pathways, and its client library pathwaysutils is not "
            "installed; install orbax-bench[pathways]"
        )
    within_s = _patience(environment) if within_s is None else within_s
    deadline = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((found[1], int(found[2])), timeout=within_s).close()
        except OSError as error:
            if time.monotonic() + _POLL_S > deadline:
                raise UserError(
                    f"JAX_PLATFORMS={platforms} is Pathways, and its proxy at {target} does not "
                    f"answer within {within_s:g} s: {error}; start it, or correct {_TARGET}"
                ) from None
        else:
            return
        time.sleep(_POLL_S)


def _patience(environment: Mapping[str, str]) -> float:
    try:
        return float(environment.get(_PATIENCE) or _WAIT_S)
    except ValueError:
        given = environment[_PATIENCE]
        raise UserError(f"{_PATIENCE}: expected a number of seconds, got {given!r}") from None
