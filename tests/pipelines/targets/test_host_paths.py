import pytest

from orbax_bench_pipelines.targets.docker import host_paths

SUITE = (
    "suite_name: x\ncheckpoint_config: {path: HERE/%s}\n"
    "benchmarks: [{generator: save_restore, options: {}}]\n"
)
LATER = SUITE % "later/checkpoint"


@pytest.mark.parametrize(
    ("arguments", "shared"),
    [
        ({"output_directory": "HERE/new/run"}, {"new/run": True}),
        ({"suite": SUITE % "there"}, {"there": True}),
        ({"suite": LATER, "fixture": LATER}, {"": True}),
        ({"baseline": "HERE"}, {"": False}),
        ({"output_directory": "HERE", "baseline": "HERE"}, {"": True}),
        ({"output_directory": "gs://bucket/run", "baseline": ""}, {}),
        ({"registry": "HERE/later"}, {"": True}),
        ({"passport": "HERE/noise.json", "earlier": "HERE/there"}, {"": True, "there": False}),
    ],
    ids=[
        "a run directory, which is made",
        "a checkpoint that is loaded",
        "a checkpoint that is to be made",
        "a baseline",
        "a baseline that is the run directory",
        "a bucket",
        "a registry that is to be made",
        "a passport beside earlier runs",
    ],
)
def test_folders_are_seen_and_those_of_results_written_to(tmp_path, arguments, shared):
    (tmp_path / "there").mkdir()
    given = {name: text.replace("HERE", str(tmp_path)) for name, text in arguments.items()}
    assert host_paths(given, {}) == {tmp_path / name: written for name, written in shared.items()}
    assert all((tmp_path / name).is_dir() for name in shared)


def test_folders_of_benchmark_classes_and_credentials_are_only_read(tmp_path):
    key = tmp_path / "key.json"
    key.touch()
    environment = {"PYTHONPATH": f"{tmp_path}:", "GOOGLE_APPLICATION_CREDENTIALS": str(key)}
    assert host_paths({}, environment) == {tmp_path: False, key: False}


def test_a_folder_of_the_image_is_never_hidden():
    assert host_paths({"suite": SUITE.replace("HERE/%s", "/usr"), "baseline": "/etc"}, {}) == {}
