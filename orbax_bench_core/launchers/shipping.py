"""Suites on their way to hosts that share nothing but the run directory."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools

from orbax_bench_core.config import with_overrides
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Shipped, pack
from orbax_bench_core.files import read_at_most
from orbax_bench_core.launchers.launch import Launch


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shipment:
    """A suite, and the command that finds it on every host.

    Attributes:
        command: Words of the command, with the suite as hosts find it.
        target: Folder for the suite in the run directory; empty where nothing has to be sent.
        name: Name of the suite file.
        suite: The suite file, word for word.
        archive: It and what it names, as a zip archive: benchmark classes may lie beside a suite.
        packed: What is in the archive, for people.
    """

    command: tuple[str, ...]
    target: str = ""
    name: str = ""
    suite: bytes = b""
    archive: bytes = b""
    packed: str = ""

    @property
    def said(self) -> str:
        """One line for people."""
        if not self.target:
            return "hosts reach the suite themselves, and nothing is copied"
        return f"to {self.target} go {self.packed}"

    @property
    def digest(self) -> str:
        """SHA-256 of what is sent, in hex: equal files have equal archives."""
        return hashlib.sha256(self.archive).hexdigest()

    def send(self) -> None:
        """Puts the suite into the run directory."""
        from etils import epath

        from orbax_bench_core.files import write_atomically

        if not self.target:
            return
        target = epath.Path(self.target)
        try:
            write_atomically(target / Shipped.ARCHIVE, self.archive)
            write_atomically(target / self.name, self.suite)
        except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
            raise UserError(
                f"cannot write the suite to {self.target}: {error}. The hosts read it from there; "
                "run this where the run directory can be written, or name a suite that the image "
                "has with --set suite_in_image=PATH"
            ) from None


def shipment(launch: Launch, *, in_image: str | None = None) -> Shipment:
    """Returns what has to be sent so that every host finds the suite."""
    suite = launch.suite
    if not suite:
        return Shipment(command=launch.command)
    if in_image is not None or "://" in suite:
        return Shipment(command=launch.with_suite(in_image or suite))
    overrides = [
        word for before, word in itertools.pairwise(launch.command) if before == "--override"
    ]
    content = read_at_most(suite)
    text = with_overrides(content.decode(errors="replace"), overrides, suite)
    suite_archive = pack(suite, launch.output_directory, text)
    assert suite_archive is not None, "a local suite lies in a folder"
    name, target = suite_archive.name, f"{launch.output_directory.rstrip('/')}/{Shipped.FOLDER}"
    return Shipment(
        command=launch.with_suite(f"{target}/{name}"),
        target=target,
        name=name,
        suite=content,
        archive=suite_archive.data,
        packed=suite_archive.said,
    )
