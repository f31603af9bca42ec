"""Devices that workers were promised, held against those that JAX finds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from orbax_bench_core.errors import UserError
from orbax_bench_core.provenance import UNKNOWN, image_that_runs
from orbax_bench_core.worker import Ready


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpectedDevices:
    """Devices that every group of workers must have.

    Attributes:
        said: How they were asked for, for messages, such as `tpu:v5e:8`.
        platform: JAX's name of the platform: `cpu`, `gpu` or `tpu`.
        kind: Pattern that JAX's kind of each device matches whole; empty for any.
        count: How many over all processes; None for any number.
    """

    said: str
    platform: str
    kind: str = ""
    count: int | None = None

    def check(self, ready: Mapping[int, Ready]) -> None:
        """Refuses workers that have other devices.

        Without an accelerator, or in an image that has no library for it, JAX takes the CPU and
        says so in a log only: the figures would be those of another machine.
        """
        for host, said in sorted(ready.items()):
            devices = said.provenance.get("devices", {})
            kind = str(devices.get("kind", UNKNOWN))
            if (
                said.platform == self.platform
                and (not self.kind or re.fullmatch(self.kind, kind))
                and self.count in (None, said.device_count)
            ):
                continue
            where = f" on host {host}" if len(ready) > 1 else ""
            image = image_that_runs()
            raise UserError(
                f"expected {self.said}, and JAX found {said.device_count} x {said.platform} "
                f"({kind}){where}: nothing was measured; run it "
                + (f"in another image than {image}, " if image != UNKNOWN else "in an image ")
                + "with the libraries of that accelerator, on a machine that has it"
            )
