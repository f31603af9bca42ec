"""Suite of benchmark objects in Python, as scripts for Orbax's own framework make it."""

import dataclasses
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orbax_bench_core.config import LoadedSuite, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import RunSettings, to_stderr
from orbax_bench_core.experiments import run
from orbax_bench_core.interface import BenchmarkOptions, BenchmarksGenerator
from orbax_bench_core.records import Run


@dataclasses.dataclass(frozen=True)
class TestSuite:
    """Benchmarks with their options, checkpoints and meshes, which are run as a suite file is.

    Workers import the classes, so that each lies in a module that can be imported. A script that
    has them itself runs the suite below `if __name__ == "__main__":`.

        TestSuite("mine", [MyBenchmark(options=MyOptions(use_ocdbt=[True, False]))], "out").run()

    Attributes:
        name: Name of the suite.
        benchmarks_generators: The benchmarks; those with the same checkpoints and meshes are
            measured in one run, interleaved.
        output_dir: The run directory, local or gs://; of several runs the folder of these.
        skip_incompatible_mesh_configs: True: a mesh that does not fit is skipped, with a note.
        num_repeats: Measured repeats of each sweep point.
        local_directory: A directory on the local disk for benchmarks that use one.
        remove_repeated_dir: Whether checkpoint data is deleted after each repeat, as a job with
            `max_to_keep` does; False keeps it.
        baseline_path: Stored baseline to compare with.
        baseline_capture_path: Directory to capture a baseline into.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    name: str
    benchmarks_generators: Sequence[BenchmarksGenerator[Any]]
    output_dir: str | None = None
    skip_incompatible_mesh_configs: bool = True
    num_repeats: int = 1
    local_directory: str | None = None
    remove_repeated_dir: bool = True
    baseline_path: str | None = None
    baseline_capture_path: str | None = None

    def suites(self) -> list[LoadedSuite]:
        """Returns it as suite files: one for each choice of checkpoints and meshes.

        Raises:
            UserError: A benchmark cannot be named in a suite, or a suite would be invalid.
        """
        groups: dict[str, dict[str, Any]] = {}
        for generator in self.benchmarks_generators:
            configs = {
                key: [_plain(config) for config in configs]
                for key in ("checkpoint_configs", "mesh_configs")
                if (configs := generator.suite_arguments.get(key))
            }
            shared = groups.setdefault(json.dumps(configs), {**configs, "benchmarks": []})
            shared["benchmarks"].append(_entry_of(generator))
        own = {
            "suite_name": self.name,
            "num_repeats": self.num_repeats,
            "baseline_path": self.baseline_path,
            "baseline_capture_path": self.baseline_capture_path,
        }
        folder = _folder_of([type(generator) for generator in self.benchmarks_generators])
        file = str(folder / f"TestSuite {self.name!r}")
        return [parse_suite(json.dumps({**own, **blocks}), file) for blocks in groups.values()]

    def run(self) -> list[Run]:
        """Measures every point, writes all reports, and returns a `Run` for each suite.

        What is in the directory already is not measured again.

        Raises:
            UserError: As `suites`, or the directory cannot be used.
        """
        if self.output_dir is None:
            raise UserError(f"TestSuite {self.name!r} has no `output_dir`: give a run directory")
        if not self.skip_incompatible_mesh_configs:
            raise UserError(
                "`skip_incompatible_mesh_configs=False` is not here: a mesh that does not fit is "
                "skipped, and the report says so; leave it out"
            )
        suites = self.suites()
        settings = RunSettings(
            local_directory=self.local_directory, keep_data=not self.remove_repeated_dir
        )
        directories = (
            [self.output_dir]
            if len(suites) == 1
            else [f"{self.output_dir}/{number}" for number in range(1, len(suites) + 1)]
        )
        return [
            run(suite, directory, settings=settings, say=to_stderr)
            for suite, directory in zip(suites, directories, strict=True)
        ]


def _plain(config: object) -> dict[str, Any]:
    """Returns a config as plain data: a mapping, or an object of either framework."""
    if isinstance(config, Mapping):
        return dict(config)
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        fields = dataclasses.asdict(config)
    else:
        dump = getattr(config, "model_dump", None)
        if dump is None:
            raise UserError(f"{config!r} is no config: give a mapping, as a suite has it")
        fields = dump(mode="json")
    return {name: value for name, value in fields.items() if value is not None}


def _entry_of(generator: BenchmarksGenerator[Any]) -> dict[str, Any]:
    cls, options = type(generator), generator.suite_arguments.get("options")
    if not isinstance(options, cls.options_class or BenchmarkOptions):
        raise UserError(f"{cls.__name__} takes `options` of {cls.options_class}, got {options!r}")
    given = {
        field.name: value
        for field in dataclasses.fields(options)
        if (value := getattr(options, field.name)) != _default(field)
    }
    for name, value in given.items():
        if isinstance(value, tuple):
            raise UserError(
                f"{cls.__name__}: the option `{name}` is a tuple, which a suite cannot tell from a "
                "list of values to sweep"
            )
    try:
        plain = json.loads(json.dumps(given, default=dataclasses.asdict))
    except TypeError as error:
        raise UserError(f"{cls.__name__}: an option cannot stand in a suite: {error}") from None
    return {"generator": _path_of(cls), "options": plain}


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _path_of(cls: type) -> str:
    """Returns the import path of a class, also of a script that runs."""
    module = cls.__module__
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = "" if file is None else Path(file).stem
    if not module or "<locals>" in cls.__qualname__:
        raise UserError(
            f"{cls.__qualname__} cannot be imported by a worker: define it in a module, outside "
            "any function"
        )
    return f"{module}.{cls.__qualname__}"


def _folder_of(classes: Sequence[type]) -> Path:
    """Returns the folder from which the first class that is no built-in is imported."""
    for cls in classes:
        if not cls.__module__.startswith("orbax_bench_core."):
            file = inspect.getsourcefile(cls)
            return Path(file or ".").resolve().parents[cls.__module__.count(".")]
    return Path.cwd()
