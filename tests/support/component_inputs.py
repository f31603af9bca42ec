"""Inputs that components take, with `PLACE` for a folder of runs: a plain and a paired one."""

from typing import Any, Final

from tests.golden import made

INPUTS: Final[dict[str, dict[str, Any]]] = {
    "aggregate": {"output_directory": "PLACE/plain"},
    "best": {"output_directory": "PLACE/plain", "goal": "", "peak_memory_bytes": 0},
    "choose_folder": {"output_directory": "PLACE", "folder_per_run": True, "slice_name": "a"},
    "calibrate": {"runs": ["PLACE/paired"], "save": ""},
    "compare_baseline": {"output_directory": "PLACE/paired", "baseline": ""},
    "enforce_verdict": {"verdict": "PASS", "lacking": []},
    "finish": {"output_directory": "PLACE/plain", "suite": made.PLAIN, "slices": []},
    "generate_checkpoint": {"suite": made.PLAIN, "fixture": ""},
    "inspect_checkpoint": {
        "checkpoint": "PLACE/folder",
        "mesh": "",
        "devices_per_host": 0,
        "restore_concurrent_gb": 0.0,
    },
    "plan_save": {
        "source": "llama-8b@0.01",
        "mesh": "",
        "devices_per_host": 0,
        "onto": "",
        "onto_devices_per_host": 0,
        "options": "",
        "run": "",
    },
    "plan_sweep": {
        "suite": made.PLAIN,
        "output_directory": "PLACE/planned",
        "arms": "",
        "processes": 0,
        "points_per_step": 0,
    },
    "publish_baseline": {
        "output_directory": "PLACE/plain",
        "registry": "PLACE/registry",
        "arm": "candidate",
        "revision": "",
        "verdict": "",
    },
    "recovery": {
        "suite": made.PLAIN,
        "output_directory": "PLACE/drilled",
        "add_notice": 0.0,
        "add_start": 0.0,
    },
    "run_sweep_point": {
        "point": "unknown",
        "output_directory": "PLACE/plain",
        "launcher": "",
        "tpu": "",
        "slices": 1,
        "launcher_settings": [],
        "expect": "",
    },
    "soak": {"suite": made.PLAIN, "output_directory": "PLACE/soaked", "saves": 1, "limit_mib": 0.1},
    "study_async": {"output_directory": "PLACE/plain"},
}
"""By the name of the component. Only a suite that is refused is soaked in time."""


def placed(value: Any, folder: object) -> Any:
    """Returns an input in which `PLACE` is a folder."""
    if isinstance(value, list):
        return [placed(one, folder) for one in value]
    return value.replace("PLACE", str(folder)) if isinstance(value, str) else value
