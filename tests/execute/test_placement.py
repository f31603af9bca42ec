"""Placement of points, devices that were promised, and Pathways, whose proxy may not be there."""

import importlib.util
import socket

import pytest

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.placement import check_proxy
from orbax_bench_core.execute.runner import environments
from orbax_bench_core.launchers import expected_devices
from orbax_bench_core.sweep import Pair

from .conftest import ready

OLD = EnvironmentConfig(name="old", interpreter="p")


def test_environments_are_made_once(make_point):
    point = make_point(environment=OLD)
    assert environments([point, Pair(baseline=point, candidate=point)]) == [OLD]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("cpu", ("cpu", "cpu", 8)),
        ("cpu:8", ("cpu", "cpu", 8)),
        ("tpu", ("tpu", "TPU v4", 4)),
        ("tpu:v5e:8", ("tpu", "TPU v5 lite", 8)),
        ("tpu:v5-lite:8", ("tpu", "TPU v5e", 8)),
        ("tpu:v7x:8", ("tpu", "TPU7x", 8)),
        ("gpu:8", ("gpu", "Tesla T4", 8)),
        ("gpu:h100-80gb:8", ("gpu", "NVIDIA H100 80GB HBM3", 8)),
        ("gpu:NVIDIA_TESLA_A100:1", ("gpu", "NVIDIA A100-SXM4-40GB", 1)),
        ("gpu:nvidia-a100-80gb:1", ("gpu", "NVIDIA A100-SXM4-80GB", 1)),
    ],
)
def test_the_devices_that_were_promised_are_taken(expected, found):
    expected_devices(expected).check({0: ready(*found)})


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("tpu:v5e:8", ("cpu", "cpu", 8)),
        ("tpu:v5e:8", ("tpu", "TPU v5 lite", 4)),
        ("tpu:v5p:8", ("tpu", "TPU v5 lite", 8)),
        ("cpu", ("tpu", "TPU v4", 4)),
        ("gpu:a100:1", ("gpu", "NVIDIA A100-SXM4-80GB", 1)),
        ("gpu:l4:1", ("gpu", "NVIDIA L40S", 1)),
        ("gpu:b200:4", ("gpu", "NVIDIA GB200", 4)),
    ],
)
def test_other_devices_are_refused_with_what_was_found(expected, found):
    platform, kind, count = found
    said = f"expected {expected}, and JAX found {count} x {platform} \\({kind}\\)"
    with pytest.raises(UserError, match=f"{said}: nothing was measured"):
        expected_devices(expected).check({0: ready(*found)})


def test_the_host_with_other_devices_is_named():
    hosts = {0: ready("tpu", "TPU v4", 8), 1: ready("cpu", "cpu", 8)}
    with pytest.raises(UserError, match="8 x cpu \\(cpu\\) on host 1"):
        expected_devices("tpu:v4:8").check(hosts)


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


def test_a_proxy_that_answers_is_enough_and_elsewhere_none_is_needed(installed):
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_proxy({**PROXY, "JAX_BACKEND_TARGET": f"grpc://127.0.0.1:{server.getsockname()[1]}"})
    check_proxy({"JAX_PLATFORMS": "cpu"})


@pytest.mark.parametrize(("given", "said"), [("0.2", "within 0.2 s"), ("soon", "got 'soon'")])
def test_a_proxy_may_take_as_long_as_its_client_waits_for_it(installed, given, said):
    variables = {"PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS": given}
    with pytest.raises(UserError, match=said):
        check_proxy({**PROXY, **variables, "JAX_BACKEND_TARGET": "grpc://127.0.0.1:1"})
