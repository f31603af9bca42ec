"""Step plan-save: files, bytes, memory and time of a save that nobody makes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pydantic

from orbax_bench_core.config import explain, read_value
from orbax_bench_core.errors import UserError, shortened, shown
from orbax_bench_core.plan import Speeds, StorageOptions, plan_source, plans_document, speeds_of_run
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Files, Outputs


@tried_again
def plan_save(
    source: str,
    *,
    mesh: str = "",
    devices_per_host: int = 0,
    onto: str = "",
    onto_devices_per_host: int = 0,
    options: str = "",
    run: str = "",
    files: Files | None = None,
) -> Outputs[list[str]]:
    """Plans a save, and the load of it, without a run and without an accelerator.

    Args:
        source: A suite file, a file with a spec, a preset, a Flax NNX factory or a checkpoint.
        mesh: The mesh that is saved from, as `data=4,fsdp=64`; empty for that of the source.
        devices_per_host: Devices of one process there; 0 for all, up to 8.
        onto: The mesh that is loaded onto; empty for the same.
        onto_devices_per_host: Devices of one process of that.
        options: Options of the save as YAML, named as those of `save_restore`, such as
            `{use_ocdbt: false}`; empty for those of the source.
        run: A run directory whose limits say what the storage can do; empty for no times.
        files: Where the plan is written.

    Returns:
        The value names what will fail, a line each.

    Raises:
        UserError: The source cannot be read, a mesh cannot hold it, options are wrong, or a file
            cannot be written.
    """
    plans = plan_source(
        source,
        mesh=mesh or None,
        changes=_options(options),
        devices_per_host=devices_per_host or None,
        restore_mesh=onto or None,
        restore_devices_per_host=onto_devices_per_host or None,
        speeds=speeds_of_run(run) if run else Speeds(),
    )
    document = plans_document(plans, f"Plans of {source}")
    named = (files or Files()).write("plan", document, [plan.numbers() for plan in plans])
    return Outputs(value=[line for plan in plans for line in plan.failures], named=named)


def _options(text: str) -> dict[str, Any]:
    """Returns storage options that are given as YAML.

    Raises:
        UserError: They are no mapping, or no options of a save.
    """
    given = read_value(text, f"options: {shortened(text)}")
    given = {} if given is None else given
    known = {field.name for field in dataclasses.fields(StorageOptions)}
    if not isinstance(given, dict):
        raise UserError(f"options: {shown(text)} is no mapping such as {{use_ocdbt: false}}")
    if unknown := sorted(str(name) for name in given if name not in known):
        raise UserError(
            f"options: no such option of a save: {', '.join(unknown)}; there are "
            f"{', '.join(sorted(known))}"
        )
    try:
        taken = pydantic.TypeAdapter(StorageOptions).validate_python(given)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise UserError(f"options: {name}: {explain(first, known)}") from None
    return {name: getattr(taken, name) for name in given}
