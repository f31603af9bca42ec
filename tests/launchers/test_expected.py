import pytest

from orbax_bench_core import launchers
from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.vertex import GPUS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("npu", "got 'npu'"),
        ("tpu:", "got 'tpu:'"),
        ("tpu:v5e:0", "got 'tpu:v5e:0'"),
        ("tpu:v5e:8:8", "got 'tpu:v5e:8:8'"),
        ("tpu:v9:8", "unknown TPU type 'v9'"),
        ("gpu:h10:8", "unknown GPU 'h10'"),
        ("cpu:x86:8", "a CPU has no kind to expect"),
    ],
)
def test_what_cannot_be_expected_is_refused(text, said):
    with pytest.raises(UserError, match=said):
        launchers.expected_devices(text)


@pytest.mark.parametrize(
    ("tpu", "slices", "expected"),
    [
        ("v5e:2x4", 1, "tpu:v5e:8"),
        ("v5p:2x2x2", 2, "tpu:v5p:16"),
        # A chip of it is two devices to JAX.
        ("v7x:2x2x1", 1, "tpu:v7x:8"),
    ],
)
def test_a_slice_says_what_is_to_be_expected_of_it(tpu, slices, expected):
    assert launchers.expectation(launchers.parse_slice(tpu), slices) == expected
    assert launchers.expected_devices(expected).count == int(expected.split(":")[-1])


@pytest.mark.parametrize("gpu", launchers.GPU_KINDS, ids=lambda gpu: gpu.name)
def test_a_gpu_is_known_by_each_of_its_names(gpu):
    for name in (gpu.name, gpu.gke, gpu.vertex):
        assert launchers.parse_gpus(f"{name}:8") == launchers.Gpus(gpu, 8)
    assert gpu.vertex in GPUS


@pytest.mark.parametrize("text", ["", "h100-80gb", "h100-80gb:", ":8", "h100-80gb:0", "-1"])
def test_gpus_that_are_written_differently_are_refused(text):
    with pytest.raises(UserError, match="GPUs are KIND:COUNT"):
        launchers.parse_gpus(text)
