"""The devices that a step expects, as text: `tpu:v5e:8`, `gpu:h100-80gb:8`, `cpu`."""

import re

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import ExpectedDevices
from orbax_bench_core.launchers.gpus import gpu_named
from orbax_bench_core.launchers.tpus import SliceShape, generation_named

_PLATFORMS = ("cpu", "gpu", "tpu")


def expected_devices(text: str) -> ExpectedDevices | None:
    """Reads what a step expects: `PLATFORM[:KIND][:COUNT]`; None if it is empty.

    Raises:
        UserError: It is not of the form, or names no known kind.
    """
    if not text:
        return None
    platform, *rest = text.split(":")
    count = int(rest.pop()) if rest and rest[-1].isascii() and rest[-1].isdigit() else None
    if platform not in _PLATFORMS or len(rest) > 1 or "" in rest or count == 0:
        raise UserError(
            "devices are expected as PLATFORM, PLATFORM:COUNT or PLATFORM:KIND:COUNT, where the "
            f"platform is cpu, gpu or tpu, such as tpu:v5e:8; got {text!r}"
        )
    kind = _pattern(platform, rest[0]) if rest else ""
    return ExpectedDevices(said=text, platform=platform, kind=kind, count=count)


def expectation(shape: SliceShape, slices: int = 1) -> str:
    """Returns the devices a measuring step expects on slices, in `expected_devices`' form."""
    return f"tpu:{shape.generation.name}:{shape.devices * slices}"


def _pattern(platform: str, kind: str) -> str:
    if platform == "tpu":
        return "|".join(re.escape(each) for each in generation_named(kind).device_kinds)
    if platform == "gpu":
        return gpu_named(kind).device_kind
    raise UserError(f"a CPU has no kind to expect, got {kind!r}; leave it out")
