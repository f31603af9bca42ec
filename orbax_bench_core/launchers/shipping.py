"""Hosts that share nothing with this machine but the run directory: checks, and their suite."""

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.config import with_overrides
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Shipped, SuiteArchive, pack
from orbax_bench_core.files import read_at_most
from orbax_bench_core.launchers.launch import Launch

_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_LABEL: Final = 63
"""Most characters of a label of Kubernetes or of the domain name system, as a pod's name is one."""
_SUFFIX = "-abcde"
"""Suffix that a job appends to the names of its pods."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shipment:
    """A suite with what it names, for the run directory, and the command that finds it there."""

    command: tuple[str, ...]
    target: str = ""
    suite: bytes = b""
    archive: SuiteArchive | None = None  # None where hosts reach the suite themselves
    # where hosts mount what the run directory lies on; None if it is in a bucket
    mounted: str | None = None

    @property
    def said(self) -> str:
        """One line for people."""
        if self.archive is None:
            return "hosts reach the suite themselves, and nothing is copied"
        not_here = "" if self._is_here else f"; {self._not_here}"
        return f"to {self.target} go {self.archive.said}{not_here}"

    @property
    def digest(self) -> str:
        """SHA-256 of what is sent, in hex: equal files have equal archives."""
        return hashlib.sha256(b"" if self.archive is None else self.archive.data).hexdigest()

    @property
    def _is_here(self) -> bool:
        """Whether this machine has the folder that hosts mount: else it would write its own."""
        return self.mounted is None or Path(self.mounted).is_dir()

    @property
    def _not_here(self) -> str:
        return f"{self.mounted}, which the hosts mount, is no folder of this machine"

    def send(self) -> None:
        """Puts the suite into the run directory.

        Raises:
            UserError: The run directory cannot be reached or written from this machine.
        """
        from orbax_bench_core.files import place, write_atomically

        if self.archive is None:
            return
        if not self._is_here:
            raise UserError(
                f"{self._not_here}, so that it cannot put the suite there for them: mount it here "
                "as well, put the run directory into a bucket, or name a suite that the hosts have "
                "with --set suite_in_image=PATH (on TPU VMs suite_on_hosts=PATH)"
            )
        target = place(self.target)
        try:
            write_atomically(target / Shipped.ARCHIVE, self.archive.data)
            write_atomically(target / self.archive.name, self.suite)
        except Exception as error:  # noqa: BLE001 - every client of a store has its own errors
            raise UserError(
                f"cannot write the suite to {self.target}: {error}. The hosts read it from there; "
                "run this where the run directory can be written, or name a suite that the image "
                "has with --set suite_in_image=PATH"
            ) from None


def shipment(
    launch: Launch, *, in_image: str | None = None, mounted: str | None = None
) -> Shipment:
    """Returns the files to send so that every host finds the suite.

    Args:
        launch: What is started; its suite may be a file here, in the image, or in a bucket.
        in_image: Path of the suite where the command runs; None if it is not there yet.
        mounted: Folder at which the hosts have a shared volume; None without one.
    """
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
    archive = pack(suite, launch.output_directory, text)
    assert archive is not None, "a local suite lies in a folder"
    target = f"{launch.output_directory.rstrip('/')}/{Shipped.FOLDER}"
    command = launch.with_suite(f"{target}/{archive.name}")
    shared = None if launch.output_directory.startswith("gs://") else mounted
    return Shipment(command=command, target=target, suite=content, archive=archive, mounted=shared)


def is_digest(image: str) -> bool:
    """Says whether an image is named by what is in it."""
    return _DIGEST.fullmatch(image) is not None


def require_digest(launch: Launch, place: str) -> str:
    """Returns the image of a launch.

    Raises:
        UserError: There is no image, or it is named by a tag, which may mean another one tomorrow.
    """
    if launch.image is not None and is_digest(launch.image):
        return launch.image
    given = "" if launch.image is None else f", got {launch.image}"
    raise UserError(
        f"--on {place} needs --image NAME@sha256:DIGEST{given}. A tag can name another image on "
        "each host, and a result that cannot be repeated; `docker push` and `crane digest` print "
        "the digest"
    )


def require_shared(
    launch: Launch, place: str, mounted: str | None = None, *, mount: str = ""
) -> None:
    """Checks that all hosts reach the run directory.

    Args:
        launch: The launch.
        place: Name of the place, for the message.
        mounted: Path at which hosts mount a volume; None without one.
        mount: The setting that mounts one, for the message.

    Raises:
        UserError: The run directory is a local path outside of it.
    """
    directory = launch.output_directory
    if directory.startswith("gs://"):
        return
    if mounted is not None and Path(directory).is_relative_to(mounted):
        return
    remedy = (
        f"put it below {mounted}, where the volume is mounted"
        if mounted is not None
        else f"use gs://BUCKET/FOLDER{', or mount a volume with --set ' if mount else ''}{mount}"
    )
    raise UserError(
        f"--on {place}: the run directory {directory} is a folder of this machine, and hosts there "
        f"cannot reach it; {remedy}"
    )


def require_jobset_names(name: str, jobs: Mapping[str, tuple[int, int]], head: str = "") -> None:
    """Checks all names that JobSet makes of its own, as its webhook does.

    Args:
        name: Name of the JobSet.
        jobs: Its jobs by name, each with its replicas and the pods of one.
        head: The job of host 0 where a coordinator is named after it; empty without one.

    Raises:
        UserError: A name is longer than Kubernetes allows; the message says how long `name` may be.
    """
    made = [
        ("pod", f"{{}}-{job}-{replicas - 1}-{pods - 1}{_SUFFIX}", 1)
        for job, (replicas, pods) in jobs.items()
    ]
    if head:
        made.append(("label of the coordinator", f"{{}}-{head}-0-0.{{}}", 2))
    # The form has two characters for each place of the name.
    rooms = [(_LABEL - len(form)) // times + 2 for _, form, times in made]
    room = min(rooms)
    if len(name) > room:
        kind, form, _ = made[rooms.index(room)]
        longest = form.format(name, name)
        raise UserError(
            f"--name {name}: the {kind} {longest} would have {len(longest)} characters, and "
            f"Kubernetes allows {_LABEL}; take a name of at most {room}"
        )
