"""Workers with other devices than were promised."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import expected_devices
from orbax_bench_core.worker import Ready


def ready(platform, kind, count):
    devices = {"platform": platform, "kind": kind, "count": count}
    return Ready(
        platform=platform,
        device_count=count,
        fixed=True,
        provenance={"devices": devices},
        processes=1,
        host_memory="reused",
        x64=True,
        interpreter="",
        interpreter_asked="",
    )


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
