"""Draft of a suite: what to save and what to ask of it, as a file with comments that runs."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, Literal

from orbax_bench_core import config, plan
from orbax_bench_core.errors import UserError, command, did_you_mean, listed
from orbax_bench_core.inventory import locate, read_items
from orbax_bench_core.pages import num_bytes
from orbax_bench_core.suite_files.schema import modeline

SCHEMA_FILE: Final = "orbax-bench.schema.json"
"""Name of the schema beside a suite."""

_SCALES: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
_MOST_BYTES: Final = 64 * 2**20
"""Arrays of a preset whose scale nobody has chosen, so that a first run takes minutes."""

_COLUMN: Final = 38
_USUAL_AXIS: Final = "fsdp"


Question = Literal["options", "compare"]
"""Question that a suite is to answer."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
    """Data to save and load: one of a preset, a model and a checkpoint; synthetic without any."""

    preset: str | None = None  # name of a model preset
    # factor of its widths; None takes the largest that a first run should have
    scale: float | None = None
    nnx: str | None = None  # A Flax NNX model, as `module:factory`
    checkpoint: str | None = None  # path of an existing checkpoint
    like: str | None = None  # one whose tree is made anew: shapes, dtypes and shardings

    def __post_init__(self) -> None:
        """Refuses what contradicts itself."""
        names = {"--preset": self.preset, "--nnx": self.nnx, "--checkpoint": self.checkpoint}
        given = [flag for flag, value in names.items() if value is not None]
        if len(given) > 1:
            raise UserError(f"{' and '.join(given)} are two things to save; give one of them")
        if self.scale is not None and self.preset is None:
            raise UserError("--scale is that of a preset: give --preset as well")
        if self.scale is not None and not 0 < self.scale <= 1:
            raise UserError(f"--scale: more than 0 and at most 1, got {self.scale:g}")
        if self.preset is not None and self.preset not in config.MODELS:
            hint = did_you_mean(self.preset, config.MODELS)
            raise UserError(f"--preset: there is no preset {self.preset!r}; {hint}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices that a suite is drafted for."""

    count: int  # how many there are, or how many to simulate
    simulated: bool  # whether a mesh may have another number of them


def draft_suite(
    subject: Subject,
    question: Question,
    *,
    file: str,
    devices: Devices,
    mesh: str | None = None,
    with_schema: bool = True,
) -> config.LoadedSuite:
    """Drafts a suite, checked as any other. A model in the safetensors format is only loaded.

    Args:
        subject: What is saved and loaded: a model, a checkpoint, a preset or synthetic arrays.
        question: What the suite is to answer.
        file: Name of the file, for its comments and for messages.
        devices: The devices that it will run on.
        mesh: Axes and their lengths, as `--mesh` takes them; None for the usual one.
        with_schema: Whether its first line names the schema for editors.

    Raises:
        UserError: The mesh cannot be read, or the subject cannot be used.
        SuiteError: The draft is not valid.
    """
    place = None if mesh is None else plan.read_mesh(mesh, 1)
    if subject.nnx is not None:
        part = _of_model(subject.nnx, file, place, devices)
    elif subject.checkpoint is not None:
        part = _of_checkpoint(subject.checkpoint, place)
        if part.benchmark and question == "compare":
            raise UserError(
                f"{subject.checkpoint} is in the safetensors format, of which only loads are "
                "measured: give --for options"
            )
    elif subject.like is not None:
        part = _like(subject.like)
    elif subject.preset is not None:
        part = _of_preset(subject.preset, subject.scale, place or _usual(devices))
    else:
        part = _synthetic(place or _usual(devices))
    lines = [
        *([modeline(SCHEMA_FILE)] if with_schema else []),
        *_head(part.name, question, PurePath(file).name),
        "",
        *part.lines,
        *_mesh(part.mesh, devices),
        "",
        *(part.benchmark or _BENCHMARK[question]),
        *([f"  processes: {part.processes}"] if part.processes > 1 else []),
    ]
    return config.parse_suite("\n".join(lines) + "\n", file)


@dataclasses.dataclass(frozen=True)
class _Part:
    """The part of a suite that says what is saved, and the mesh that holds it."""

    name: str
    lines: tuple[str, ...]
    mesh: plan.PlanMesh | None
    processes: int = 1
    benchmark: tuple[str, ...] = ()  # instead of the usual one


def _usual(devices: Devices) -> plan.PlanMesh:
    return plan.PlanMesh((_USUAL_AXIS,), (devices.count,), 1)


def _of_preset(name: str, scale: float | None, mesh: plan.PlanMesh) -> _Part:
    def size(factor: float) -> int:
        sizes = dict(zip(mesh.axes, mesh.sizes, strict=True))
        source = config.CheckpointConfig(model=name, scale=factor, optimizer="adamw")
        found = config.expanded(
            source, config.MeshConfig(mesh_axes=mesh.axes, ici_parallelism=sizes)
        ).num_bytes
        assert found is not None
        return found

    if scale is None:
        scale = next((factor for factor in _SCALES if size(factor) <= _MOST_BYTES), _SCALES[-1])
    at_scale, full = num_bytes(size(scale)), num_bytes(size(1.0))
    others = ", ".join(model for model in config.MODELS if model != name)
    lines = (
        f"# The tree of the model, with made-up values: {at_scale} here, {full} at scale 1.",
        "checkpoint_config:",
        _with_comment(f"  model: {name}", f"or {others}"),
        _with_comment(f"  scale: {scale:g}", "of the widths; all layers stay"),
        _with_comment("  optimizer: adamw", "whose state is saved, too; or sgd, none"),
    )
    return _Part(name, lines, mesh)


def _of_model(factory: str, file: str, mesh: plan.PlanMesh | None, devices: Devices) -> _Part:
    tree = plan.tree_of_model(factory, file)
    mesh = mesh or _mesh_for(tree, devices)
    for array in tree.arrays:
        if mesh is not None:
            plan.onto(array, mesh)
    arrays = f"{tree.elements:,} elements in {len(tree.arrays)} arrays"
    lines = (
        f"# The state of a Flax NNX model: {arrays}, {num_bytes(tree.num_bytes)}.",
        "checkpoint_config:",
        _with_comment(f"  nnx: {_quoted(factory)}", "module:factory; it takes `rngs`"),
    )
    return _Part(tree.label, lines, mesh)


def _mesh_for(tree: plan.PlannedTree, devices: Devices) -> plan.PlanMesh | None:
    """Returns a mesh with the axes that a model names; None if it names none.

    All devices are along the axis that most arrays name; simulated ones may be fewer.
    """
    used = [
        axis
        for array in tree.arrays
        for entry in array.spec
        for axis in ((entry,) if isinstance(entry, str) else entry or ())
    ]
    if not used:
        return None
    axes = tuple(sorted(set(used), key=lambda axis: (-used.count(axis), axis != _USUAL_AXIS, axis)))
    counts = [devices.count]
    while devices.simulated and counts[-1] > 1:
        counts.append(counts[-1] // 2)
    for count in counts:
        for place in range(len(axes)):
            sizes = tuple(count if index == place else 1 for index in range(len(axes)))
            mesh = plan.PlanMesh(axes, sizes, 1)
            try:
                for array in tree.arrays:
                    plan.onto(array, mesh)
            except UserError as error:
                failure = error
            else:
                return mesh
    raise UserError(f"{failure}; give a mesh that fits as --mesh, such as --mesh {axes[0]}=2")


def _of_checkpoint(path: str, mesh: plan.PlanMesh | None) -> _Part:
    source = config.CheckpointConfig(path=path)
    tree = plan.tree_of_config(source, None)
    if tree.problems:
        raise UserError(f"no suite can load checkpoint {path!r}: {listed(tree.problems, 3)}")
    assert source.path is not None
    arrays = f"{len(tree.arrays)} arrays, {num_bytes(tree.num_bytes)}"
    if locate(path).form == "safetensors":
        only = f"# A model in the safetensors format: {arrays}. It is only read."
        return _Part(tree.label, (only,), mesh, benchmark=tuple(_load_of_model(source.path)))
    lines = (
        f"# An existing checkpoint: {arrays}. It is only read; every array is",
        "# spread over all devices, unless `sharding_config_path` says otherwise.",
        "checkpoint_config:",
        f"  path: {_quoted(source.path)}",
    )
    return _Part(tree.label, lines, mesh)


def _load_of_model(path: str) -> Iterator[str]:
    yield "benchmarks:"
    yield _with_comment("  - generator: safetensors_load", "Orbax only loads this format")
    yield _with_comment("    options:", "`orbax-bench list safetensors_load` explains them")
    yield f"      checkpoint_path: {_quoted(path)}"
    yield "      # sharding_config_path: `orbax-bench sharding` writes one"
    yield _with_comment("      safetensors_read_chunk_mb: [null, 1]", "a list is swept")


def _like(path: str) -> _Part:
    """Returns the tree of a checkpoint by its metadata, with made-up values of the same sizes."""
    stored = read_items(path)
    tree, mesh = plan.tree_of_stored(stored), plan.saved_mesh(stored)
    spec: dict[str, Any] = {}
    leaves: list[tuple[tuple[str | int, ...], str]] = [(number, "int") for number in tree.numbers]
    for array in tree.arrays:
        axes = () if mesh is None else plan.onto(array, mesh)
        entries = [list(entry) if isinstance(entry, tuple) else entry for entry in axes]
        shape = f"dtype: {array.dtype}, shape: {json.dumps(array.shape)}"
        sharded = f", sharding: {json.dumps(entries)}" if any(entries) else ""
        leaves.append((array.path, f"{{{shape}{sharded}}}"))
    for keys, leaf in leaves:
        inner = spec
        for key in keys[:-1]:
            inner = inner.setdefault(str(key), {})
        inner[str(keys[-1])] = leaf
    arrays = f"{len(tree.arrays)} arrays, {num_bytes(tree.num_bytes)}"
    lines = (
        f"# The tree of {_quoted(path)}: {arrays}, with made-up values.",
        "checkpoint_config:",
        "  spec:",
        *_tree_lines(spec, 4),
    )
    return _Part(f"like my job of {arrays}", lines, mesh, 1 if mesh is None else mesh.num_hosts)


def _tree_lines(tree: Mapping[str, Any], indent: int) -> Iterator[str]:
    for key, value in tree.items():
        begin = f"{' ' * indent}{_quoted(key)}:"
        if isinstance(value, str):
            yield f"{begin} {value}"
        else:
            yield begin
            yield from _tree_lines(value, indent + 2)


def _synthetic(mesh: plan.PlanMesh) -> _Part:
    rows = 256 * mesh.num_devices
    columns = 2 ** max(8, 21 - math.ceil(math.log2(rows)))
    size = num_bytes(rows * columns * 4)
    shape = f"{{dtype: float32, shape: [{rows}, {columns}], sharding: [{mesh.axes[0]}]}}"
    lines = (
        "# A tree of arrays by name, with made-up values; names may nest.",
        "checkpoint_config:",
        "  spec:",
        f"    params: {shape}   # {size}",
        "    step: int",
    )
    return _Part("synthetic arrays", lines, mesh)


def _head(name: str, question: Question, file: str) -> Iterator[str]:
    asked, line, ends = {
        "options": (
            "Which options make a save and a load fast here?",
            command("run", file, "-o", "results"),
            "It ends with the options to take; results/report.html has every number.",
        ),
        "compare": (
            "Is the candidate slower than the baseline, or is it noise?",
            command("ab", file, "-o", "results"),
            "It ends with REGRESSION, PASS or INCONCLUSIVE; results/verdicts.html says why.",
        ),
    }[question]
    yield f"# {asked}"
    yield "#"
    yield f"#   {line}"
    yield "#"
    yield f"# {ends}"
    yield f"suite_name: {_quoted(f'{name}: {question}')}"
    if question == "options":
        yield _with_comment("num_repeats: 5", "more of them narrow what the answer leaves open")


def _mesh(mesh: plan.PlanMesh | None, devices: Devices) -> Iterator[str]:
    if mesh is None:
        return
    sizes = ", ".join(f"{axis}: {size}" for axis, size in zip(mesh.axes, mesh.sizes, strict=True))
    yield ""
    if devices.simulated:
        yield "# Devices. On a CPU they are simulated; of accelerators a mesh must have all."
    else:
        yield f"# Devices: this machine has {devices.count}, and a mesh must have all of them."
    yield "mesh_config:"
    yield f"  mesh_axes: [{', '.join(mesh.axes)}]"
    yield f"  ici_parallelism: {{{sizes}}}"


def _with_comment(line: str, comment: str) -> str:
    return f"{line.ljust(_COLUMN)}# {comment}"


def _quoted(text: str) -> str:
    """Returns a text as YAML has it; JSON's strings are YAML's."""
    return json.dumps(text, ensure_ascii=False)


_BENCHMARK: Final[Mapping[Question, tuple[str, ...]]] = {
    "options": (
        "benchmarks:",
        _with_comment("  - generator: save_restore", "`orbax-bench list` shows the others"),
        _with_comment("    options:", "`orbax-bench list save_restore` explains them"),
        _with_comment("      use_ocdbt: [true, false]", "a list is swept: every combination"),
        "      use_compression: [true, false]",
        "      # The first point is Orbax's own defaults: the first value of each list, and these.",
        _with_comment("      use_replica_parallel: true", "false is Orbax's own on GPUs"),
        "      use_zarr3: true",
        "      # save_concurrent_gb: [null, 1]",
        "",
        "execution:",
        _with_comment("  cache: warm", "page cache before a load; or cold, or [warm, cold]"),
    ),
    "compare": (
        "benchmarks:",
        _with_comment("  - generator: save_restore", "`orbax-bench list` shows the others"),
        _with_comment("    options: {}", "`orbax-bench list save_restore` explains them"),
        "",
        "# What each side has different. Two releases: define both under `environments`, such as",
        '# `- {name: old, requirements: ["orbax-checkpoint==0.11.32"]}`, and name one in each arm.',
        "arms:",
        _with_comment("  baseline: {}", "the suite as it is"),
        "  candidate: {options: {use_compression: false}}",
        "",
        "gate:",
        _with_comment("  tolerance: 0.03", "the largest slow-down that nobody minds"),
        _with_comment("  margin: 0.15", "the smallest slow-down that nobody may miss"),
    ),
}
