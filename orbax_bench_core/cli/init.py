"""`orbax-bench init`: create a starter suite, by flags or a few questions."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from orbax_bench_core.cli.arguments import takes_flags

if TYPE_CHECKING:
    from orbax_bench_core.suite_files import Devices, Subject

_SUBJECTS: Final = {
    "preset": "the tree of a published model, with made-up values",
    "nnx": "your Flax NNX model",
    "checkpoint": "an existing checkpoint",
    "synthetic": "made-up arrays, to be changed in the file",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SubjectFlags:
    """What the suite is to save, one of these."""

    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Save the tree of a published model, such as llama-8b."),
    ] = None
    scale: Annotated[
        float | None,
        typer.Option(help="Factor of the preset's widths; by default arrays of 64 MiB at most."),
    ] = None
    nnx: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="Save your Flax NNX model, whose factory takes `rngs`. The module is "
            "installed, or next to the suite.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Save the content of a checkpoint, local or gs://."),
    ] = None
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Save made-up arrays, to be changed in the file.")
    ] = False

    def subject(self) -> Subject:
        """Returns the subject that was named; an empty one for made-up arrays."""
        from orbax_bench_core.suite_files import Subject

        return Subject(
            preset=self.preset, scale=self.scale, nnx=self.nnx, checkpoint=self.checkpoint
        )


@takes_flags()
def init(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The suite; - prints it.")
    ] = "suite.yaml",
    *,
    given: SubjectFlags,
    question: Annotated[
        Literal["options", "compare"] | None,
        typer.Option(
            "--for",
            help="What it answers: options (which are fast here, the default) or compare (is "
            "one side slower than the other).",
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=SIZE,...",
            help="The device mesh, such as data=2,fsdp=4; by default all devices along one axis.",
        ),
    ] = None,
    no_schema: Annotated[
        bool,
        typer.Option("--no-schema", help="Write no JSON schema next to the suite."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Create a starter suite that runs unchanged.

    Without a flag for what to save, it asks on a terminal. The suite is commented, and editors
    complete and check it by the schema that is written next to it.

    orbax-bench init --preset llama-8b -o suite.yaml

    orbax-bench init --nnx my_package.models:make --for compare
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import create_exclusively, place, write_atomically
    from orbax_bench_core.suite_files import SCHEMA_FILE, Subject, draft_suite
    from orbax_bench_core.sweep import expand

    asked = question or "options"
    target = None if output == "-" else _target(output, force=force)
    subject = given.subject()
    if subject == Subject() and not given.synthetic:
        if not sys.stdin.isatty():
            raise UserError(
                "say what to save: --preset llama-8b, --nnx module:factory, --checkpoint PATH or "
                "--synthetic; on a terminal this command asks"
            )
        subject = _ask_subject()
        asked = question or _ask("What is it to answer?", ["options", "compare"])
    elif given.synthetic and subject != Subject():
        raise UserError("--synthetic and another flag are two things to save; give one of them")
    loaded = draft_suite(
        subject,
        asked,
        file=str(target or Path("suite.yaml").resolve()),
        devices=_devices(),
        mesh=mesh,
        with_schema=target is not None and not no_schema,
    )
    expansion = expand(loaded)
    if not expansion.points:
        raise UserError(f"nothing of this suite can be measured: {expansion.skipped[0].reason}")
    if target is None:
        print(loaded.text, end="")
        return
    if not no_schema:
        _write_schema(target.parent / SCHEMA_FILE, force=force)
    if force:
        write_atomically(str(target), loaded.text.encode())
    elif not create_exclusively(place(str(target)), loaded.text.encode()):
        raise UserError(f"{target} exists; --force replaces it")
    _say_next(target, len(expansion.points), loaded.suite.num_repeats, asked)


def _target(output: str, *, force: bool) -> Path:
    from orbax_bench_core.errors import UserError

    if "://" in output:
        raise UserError(f"-o: a suite is written to a local file, got {output!r}; -o - prints it")
    target = Path(output).expanduser().resolve()
    if target.is_dir():
        raise UserError(f"-o: {target} is a folder; name a file in it, such as {target}/suite.yaml")
    if target.exists() and not force:
        raise UserError(f"{target} exists; --force replaces it, -o names another file")
    if not target.parent.is_dir():
        raise UserError(f"-o: there is no folder {target.parent}; make it, or name another file")
    return target


def _ask_subject() -> Subject:
    from orbax_bench_core.config import MODELS
    from orbax_bench_core.suite_files import Subject

    print("What is saved and loaded?")
    for kind, meaning in _SUBJECTS.items():
        print(f"  {kind:<10}  {meaning}")
    match _ask("Which?", list(_SUBJECTS)):
        case "preset":
            return Subject(preset=_ask("Which model?", list(MODELS)))
        case "nnx":
            return Subject(nnx=typer.prompt("Its factory, as module:factory"))
        case "checkpoint":
            return Subject(checkpoint=typer.prompt("Its path"))
    return Subject()


def _ask(text: str, allowed: list[str]) -> Any:
    """Asks until the answer is one of those that are allowed; no answer is the first of them."""
    while True:
        answer: str = typer.prompt(f"{text} ({', '.join(allowed)})", default=allowed[0])
        if answer in allowed:
            return answer
        print(f"{answer!r} is not one of them.")


def _devices() -> Devices:
    from orbax_bench_core.cli.machine import probe_devices
    from orbax_bench_core.suite_files import Devices

    found = probe_devices()
    if isinstance(found, str):
        print(f"note: devices are not known, and four are taken: {found}", file=sys.stderr)
    elif found["platform"] != "cpu" or found["count"] > 1:  # or simulated for all of this shell
        return Devices(count=int(found["count"]), simulated=found["platform"] == "cpu")
    return Devices(count=4, simulated=True)


def _write_schema(file: Path, *, force: bool) -> None:
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import write_atomically
    from orbax_bench_core.suite_files import SCHEMA_ID, schema_text

    if file.exists() and not force and SCHEMA_ID not in file.read_text(errors="replace"):
        raise UserError(
            f"{file} exists and is not a schema of suites; --force replaces it, --no-schema "
            "writes none"
        )
    write_atomically(str(file), schema_text().encode())


def _say_next(target: Path, points: int, repeats: int, question: str) -> None:
    from orbax_bench_core.errors import command
    from orbax_bench_core.pages import count

    name = target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target
    verb = "run" if question == "options" else "ab"
    size = count(points, "point")
    times = f" x {count(repeats, 'repeat')}" if question == "options" else ", in both arms"
    print(f"{name}: {size}{times}\nNext: {command(verb, name, '-o', 'results')}")
