"""The GPUs of Google Cloud: their names on GKE, on Vertex AI and in JAX.

Sources of the table: GKE's label `cloud.google.com/gke-accelerator`, Vertex AI's `AcceleratorType`,
and the names that CUDA's driver gives devices, which JAX takes over as their kind.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from orbax_bench_core.errors import UserError, did_you_mean

GPU_RESOURCE: Final = "nvidia.com/gpu"
GKE_GPU: Final = "cloud.google.com/gke-accelerator"


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: Its name here, such as `h100-80gb`.
        gke: GKE's name, the value of the label of its nodes.
        vertex: Vertex AI's name.
        device_kind: Pattern that JAX's kind of the device matches whole.
        counts: How many of them a machine can have.
    """

    name: str
    gke: str
    vertex: str
    device_kind: str
    counts: tuple[int, ...]


_H100: Final = r".*\bH100\b.*80GB.*"
_TO_8: Final = (1, 2, 4, 8)
GPU_KINDS: Final = (
    Gpu("t4", "nvidia-tesla-t4", "NVIDIA_TESLA_T4", r".*\bT4\b.*", (1, 2, 4)),
    Gpu("p4", "nvidia-tesla-p4", "NVIDIA_TESLA_P4", r".*\bP4\b.*", (1, 2, 4)),
    Gpu("p100", "nvidia-tesla-p100", "NVIDIA_TESLA_P100", r".*\bP100\b.*", (1, 2, 4)),
    Gpu("v100", "nvidia-tesla-v100", "NVIDIA_TESLA_V100", r".*\bV100\b.*", _TO_8),
    Gpu(
        "a100",
        "nvidia-tesla-a100",
        "NVIDIA_TESLA_A100",
        r".*\bA100\b(?!.*80GB).*",
        (*_TO_8, 16),
    ),
    Gpu("a100-80gb", "nvidia-a100-80gb", "NVIDIA_A100_80GB", r".*\bA100\b.*80GB.*", _TO_8),
    Gpu("l4", "nvidia-l4", "NVIDIA_L4", r".*\bL4\b.*", _TO_8),
    Gpu("h100-80gb", "nvidia-h100-80gb", "NVIDIA_H100_80GB", _H100, _TO_8),
    Gpu(
        "h100-mega-80gb",
        "nvidia-h100-mega-80gb",
        "NVIDIA_H100_MEGA_80GB",
        r".*\bH100\b.*80GB.*",
        (8,),
    ),
    Gpu("h200-141gb", "nvidia-h200-141gb", "NVIDIA_H200_141GB", r".*\bH200\b.*", (8,)),
    Gpu("b200", "nvidia-b200", "NVIDIA_B200", r".*\bB200\b.*", (8,)),
    Gpu("gb200", "nvidia-gb200", "NVIDIA_GB200", r".*\bGB200\b.*", (4,)),
    Gpu(
        "rtx-pro-6000",
        "nvidia-rtx-pro-6000",
        "NVIDIA_RTX_PRO_6000",
        r".*\bRTX PRO 6000\b.*",
        _TO_8,
    ),
)


@dataclasses.dataclass(frozen=True)
class Gpus:
    """GPUs of one machine.

    Attributes:
        kind: Which; None for any.
        count: How many.
    """

    kind: Gpu | None
    count: int

    def __str__(self) -> str:
        return str(self.count) if self.kind is None else f"{self.kind.name}:{self.count}"

    def on(self, hosts: int) -> Gpus:
        """Returns those of so many machines together."""
        return dataclasses.replace(self, count=self.count * hosts)

    @property
    def expected(self) -> str:
        """What a step that measures on them expects, as `expected_devices` reads it."""
        return f"gpu:{self}"


def parse_gpus(text: str) -> Gpus:
    """Reads GPUs as the command line takes them: `KIND:COUNT`, or `COUNT` of any kind."""
    kind, separator, number = text.strip().rpartition(":")
    if not (number.isascii() and number.isdigit() and int(number)) or (separator and not kind):
        raise UserError(f"GPUs are KIND:COUNT, such as h100-80gb:8, or COUNT; got {text!r}")
    return Gpus(gpu_named(kind) if kind else None, int(number))


def gpu_named(name: str) -> Gpu:
    """Returns the kind of GPU that people call so, by its name here, on GKE or on Vertex AI."""
    for gpu in GPU_KINDS:
        if name in (gpu.name, gpu.gke, gpu.vertex):
            return gpu
    raise UserError(f"unknown GPU {name!r}; {did_you_mean(name, [gpu.name for gpu in GPU_KINDS])}")
