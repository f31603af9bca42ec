"""The GPUs of Google Cloud, by their names here, on GKE, on Vertex AI and in JAX.

Sources of the table: GKE's label `cloud.google.com/gke-accelerator`, and the names that CUDA's
driver gives GPUs, which JAX takes over as their kind.
"""

import dataclasses
from typing import Self

from orbax_bench_core.errors import UserError, did_you_mean

GKE_GPU = "cloud.google.com/gke-accelerator"
GPU_RESOURCE = "nvidia.com/gpu"


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One kind of GPU, how JAX calls it, as a pattern, and how many of them a machine can have."""

    name: str
    gke: str
    device_kind: str
    counts: tuple[int, ...]

    @property
    def vertex(self) -> str:
        """Vertex AI's name, its `AcceleratorType`."""
        return self.gke.upper().replace("-", "_")


_TO_8 = (1, 2, 4, 8)
GPU_KINDS = (
    Gpu("t4", "nvidia-tesla-t4", r".*\bT4\b.*", (1, 2, 4)),
    Gpu("p4", "nvidia-tesla-p4", r".*\bP4\b.*", (1, 2, 4)),
    Gpu("p100", "nvidia-tesla-p100", r".*\bP100\b.*", (1, 2, 4)),
    Gpu("v100", "nvidia-tesla-v100", r".*\bV100\b.*", _TO_8),
    Gpu("a100", "nvidia-tesla-a100", r".*\bA100\b(?!.*80GB).*", (*_TO_8, 16)),
    Gpu("a100-80gb", "nvidia-a100-80gb", r".*\bA100\b.*80GB.*", _TO_8),
    Gpu("l4", "nvidia-l4", r".*\bL4\b.*", _TO_8),
    Gpu("h100-80gb", "nvidia-h100-80gb", r".*\bH100\b.*80GB.*", _TO_8),
    Gpu("h100-mega-80gb", "nvidia-h100-mega-80gb", r".*\bH100\b.*80GB.*", (8,)),
    Gpu("h200-141gb", "nvidia-h200-141gb", r".*\bH200\b.*", (8,)),
    Gpu("b200", "nvidia-b200", r".*\bB200\b.*", (8,)),
    Gpu("gb200", "nvidia-gb200", r".*\bGB200\b.*", (4,)),
    Gpu("rtx-pro-6000", "nvidia-rtx-pro-6000", r".*\bRTX PRO 6000\b.*", _TO_8),
)


@dataclasses.dataclass(frozen=True)
class Gpus:
    """GPUs of one machine."""

    kind: Gpu | None
    count: int

    def __str__(self) -> str:
        return str(self.count) if self.kind is None else f"{self.kind.name}:{self.count}"

    def on(self, hosts: int) -> Self:
        """Returns those of so many machines together."""
        return dataclasses.replace(self, count=self.count * hosts)

    @property
    def expected(self) -> str:
        """What a step that measures on them expects, as `expected_devices` reads it."""
        return f"gpu:{self}"


def parse_gpus(text: str) -> Gpus:
    """Reads GPUs as the command line takes them: `KIND:COUNT`, or `COUNT` of any kind.

    Raises:
        UserError: It is not of the form, or names no known GPU.
    """
    kind, separator, number = text.strip().rpartition(":")
    if not (number.isascii() and number.isdigit() and int(number)) or (separator and not kind):
        raise UserError(f"GPUs are KIND:COUNT, such as h100-80gb:8, or COUNT; got {text!r}")
    return Gpus(gpu_named(kind) if kind else None, int(number))


def gpu_named(name: str) -> Gpu:
    """Returns the kind of GPU that people call so, by its name here, on GKE or on Vertex AI.

    Raises:
        UserError: There is none; the message names the nearest.
    """
    for gpu in GPU_KINDS:
        if name in (gpu.name, gpu.gke, gpu.vertex):
            return gpu
    raise UserError(f"unknown GPU {name!r}; {did_you_mean(name, [gpu.name for gpu in GPU_KINDS])}")
