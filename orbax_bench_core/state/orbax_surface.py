"""`python -m orbax_bench_core.state.orbax_surface`: what the installed Orbax lets be chosen.

It prints one JSON object: per group the options, each with its default as text, and the public
functions and classes of v1. Paths are those of `orbax_bench_core.analysis.best`: below the v1
context, or behind the name that stands for what takes the argument. Managers of local disks are
experimental modules, of which a release may lack some.
"""

import contextlib
import dataclasses
import enum
import importlib
import importlib.metadata
import inspect
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

_GIVEN: Final = ("self", "directory", "context", "local_directory", "global_mesh", "options")
"""Parameters that are no options."""

_EMERGENCY: Final = "orbax.checkpoint.experimental.emergency"
_REPLICATOR: Final = "replicator_checkpoint_manager"
_TIERS: Final = (
    ("emergency", "checkpoint_manager", "CheckpointManagerOptions"),
    ("emergency.local", "checkpoint_manager", "LocalCheckpointOptions"),
    ("emergency.persistent", "checkpoint_manager", "PersistentCheckpointOptions"),
    ("p2p", "p2p.options", "CheckpointManagerOptions"),
    ("p2p.local", "p2p.options", "LocalCheckpointOptions"),
    ("p2p.persistent", "p2p.options", "PersistentCheckpointOptions"),
    ("replicator", _REPLICATOR, "ReplicatorCheckpointManagerOptions"),
    ("replicator.manager", _REPLICATOR, "ReplicatorCheckpointManager"),
)
"""What takes options of managers of local disks: the name for it, its module and its class."""


def surface() -> dict[str, Any]:
    """Returns release, options and names of the installed Orbax."""
    import orbax.checkpoint as v0
    from orbax.checkpoint import v1

    takers: dict[str, tuple[str, Callable[..., Any]]] = {
        "training.Checkpointer of v1": ("training", v1.training.Checkpointer),
        "CheckpointManagerOptions of v0": ("options", v0.CheckpointManagerOptions),
        "AsyncOptions of v0": ("options.async_options", v0.AsyncOptions),
        "PyTreeCheckpointHandler of v0": ("handler", v0.PyTreeCheckpointHandler),
        "type_handlers.ArrayHandler of v0": ("arrays", v0.type_handlers.ArrayHandler),
    }
    for prefix, module, name in _TIERS:
        with contextlib.suppress(ImportError):
            kind = getattr(importlib.import_module(f"{_EMERGENCY}.{module}"), name)
            takers[f"{name} of {module}"] = (prefix, kind)
    options = {"Context of v1": dict(_fields(v1.Context()))}
    for title, (prefix, taker) in takers.items():
        parameters = inspect.signature(taker).parameters.values()
        options[title] = {
            f"{prefix}.{each.name}": _text(each.default)
            for each in parameters
            if each.name not in _GIVEN and each.name[0] != "_"
        }
    modules = [v1, *(m for _, m in inspect.getmembers(v1, inspect.ismodule) if m is not v1.options)]
    modules += [v1.training.save_decision_policies, v1.training.preservation_policies]
    return {
        "release": importlib.metadata.version("orbax-checkpoint"),
        "options": options,
        "names": sorted({name for module in modules for name in _public(module, v1)}),
    }


def _fields(options: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Yields path and default of each option of a context, or of a group of options in it."""
    if above:
        names = [field.name for field in dataclasses.fields(options)]
    else:  # properties, some of them under an earlier name too
        found = inspect.getmembers(type(options), inspect.isdatadescriptor)
        names = [name for name, _ in found if name[0] != "_" and not name.endswith("_options")]
    for name in names:
        value, path = getattr(options, name), f"{above}{name}"
        if type(value).__module__.endswith(".context.options") and dataclasses.is_dataclass(value):
            yield from _fields(value, f"{path}.")
        else:
            yield path, _text(value)


def _text(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, enum.Enum):
        return value.name
    plain = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if plain else getattr(value, "__name__", "its own")


def _public(module: ModuleType, root: ModuleType) -> Iterator[str]:
    """Yields functions and classes of a module, named from the root of v1."""
    below = module.__name__.removeprefix(root.__name__).lstrip(".")
    prefix = f"{below.replace('_src.', '')}." if below else ""
    for name, found in inspect.getmembers(module):
        ours = getattr(found, "__module__", "").startswith("orbax.")
        if name[0] != "_" and ours and (inspect.isfunction(found) or inspect.isclass(found)):
            yield f"{prefix}{name}"


if __name__ == "__main__":
    print(json.dumps(surface()))
