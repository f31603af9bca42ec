"""Pathways, whose proxy may not be there."""

import importlib.util
import socket

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.placement import check_proxy

PROXY = {"JAX_PLATFORMS": "proxy"}


@pytest.fixture
def installed(monkeypatch):
    """Has the client library be there, or not."""

    def be(there):
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: object() if there else None)

    be(there=True)
    return be


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "is Pathways, and JAX_BACKEND_TARGET is not set: give the address of its proxy"),
        ("proxy", "is Pathways, and JAX_BACKEND_TARGET is 'proxy'"),
        ("grpc://127.0.0.1:1", "proxy at grpc://127.0.0.1:1 does not answer within 0.1 s"),
    ],
)
def test_a_proxy_that_is_not_there_is_one_message(installed, target, message):
    given = PROXY if target is None else {**PROXY, "JAX_BACKEND_TARGET": target}
    with pytest.raises(UserError, match=message):
        check_proxy(given, within_s=0.1)


def test_a_client_library_that_is_not_there_is_one_message(installed):
    installed(there=False)
    with pytest.raises(UserError, match="pathwaysutils is not installed"):
        check_proxy({**PROXY, "JAX_BACKEND_TARGET": "grpc://127.0.0.1:1"})


def test_a_proxy_that_answers_is_enough_and_elsewhere_none_is_needed(installed):
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_proxy({**PROXY, "JAX_BACKEND_TARGET": f"grpc://127.0.0.1:{server.getsockname()[1]}"})
    check_proxy({"JAX_PLATFORMS": "cpu"})


@pytest.mark.parametrize(("given", "said"), [("0.2", "within 0.2 s"), ("soon", "got 'soon'")])
def test_a_proxy_may_take_as_long_as_its_client_waits_for_it(installed, given, said):
    variables = {"PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS": given}
    with pytest.raises(UserError, match=said):
        check_proxy({**PROXY, **variables, "JAX_BACKEND_TARGET": "grpc://127.0.0.1:1"})
