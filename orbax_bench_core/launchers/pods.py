"""Fragments of a pod, as a pipeline hands them on, as settings of the places on Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.hardware import GKE_RESOURCE

_ASKED: Final = {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpus"}
"""Resources that are settings, by Kubernetes' names."""
"""Chips of a host: the slice tells how many they are."""


def pod_settings(fragments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that say of the pods of hosts what fragments say.

    Args:
        fragments: Parts of a pod's specification by the names that `kfp.dsl.TaskConfig` has for
            them; None or empty where nothing was set.

    Raises:
        UserError: A fragment says what no setting does.
    """
    given = {name: part for name, part in fragments.items() if part}
    settings: dict[str, Any] = {
        name: given.pop(name) for name in ("node_selector", "tolerations") if name in given
    }
    settings |= _resources(given.pop("resources", {}))
    if "env" in given:
        settings["environment"] = _environment(given.pop("env"))
    if "volumes" in given or "volume_mounts" in given:
        settings["volume"] = _volume(given.pop("volumes", ()), given.pop("volume_mounts", ()))
    if given:
        raise UserError(f"a launcher cannot hand {', '.join(given)} on to the pods of the hosts")
    return settings


def _resources(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    asked = {**given.get("requests", {}), **given.get("limits", {})}
    asked.pop(GKE_RESOURCE, None)
    unknown = [name for name in asked if name not in _ASKED]
    if unknown:
        raise UserError(
            f"a launcher cannot ask for {', '.join(unknown)}; it does for {', '.join(_ASKED)}, and "
            "for TPUs by the slice"
        )
    found = {_ASKED[name]: amount for name, amount in asked.items()}
    return {name: int(amount) if name == "gpus" else str(amount) for name, amount in found.items()}


def _environment(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    by_reference = [str(each["name"]) for each in given if "valueFrom" in each]
    if by_reference:
        raise UserError(
            f"a launcher hands on variables with their values, and {', '.join(by_reference)} takes "
            "its own from Kubernetes"
        )
    return {str(each["name"]): str(each.get("value", "")) for each in given}


def _volume(volumes: Sequence[Mapping[str, Any]], mounts: Sequence[Mapping[str, Any]]) -> str:
    claims = {
        each["name"]: each["persistentVolumeClaim"]["claimName"]
        for each in volumes
        if "persistentVolumeClaim" in each
    }
    if len(claims) != 1 or len(volumes) != 1 or len(mounts) != 1:
        raise UserError(
            f"a launcher hands on one volume claim that is mounted once, and there are "
            f"{len(volumes)} volumes with {len(claims)} claims and {len(mounts)} mounts"
        )
    [mount] = mounts
    return f"{claims[mount['name']]}:{mount['mountPath']}"
