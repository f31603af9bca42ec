"""Inputs of components that nobody meant: each is accepted, or refused by one short message."""

import importlib
import os
import time

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.compile import COMPONENTS
from orbax_bench_core.engine import NotPassed, PointFailed
from orbax_bench_core.errors import UserError
from tests.golden import made
from tests.support.component_inputs import INPUTS, placed
from tests.support.executor import MOST_S, executed

# No place outside of the folder of a test: as root, all of them can be written.
TEXTS = (
    *("", " ", ".", "/proc/x", "PLACE/zeros", "PLACE/pipe", "PLACE/loop", "PLACE/bytes"),
    *("PLACE/huge", "PLACE/folder", "PLACE/bytes/below", "PLACE/missing", "PLACE/a[1]"),
    *("\x00", "a\x00b", "x" * 5_000, "x/" * 3_000, "s3://b/x", "gs:/x", "gs://b/x"),
    *("\ud800", "\x1b[2J", "**", "[", "{", "{a: [", "- " * 300, "!!python/name:os.system "),
    *("1e400", "nan", "%s%n", "null", "-1", "a=b", "x=0", "x=-1", "save=nan", "tpu:-1"),
)
NUMBERS = (-1, -(2**63), 2**63, 10**30)
AMOUNTS = (-1.0, -0.0, float("nan"), float("inf"), float("-inf"))
LISTS = ([], [""], [" "], ["\x00"], ["x" * 5_000], ["x"] * 5_000, ["="], ["PLACE/pipe"])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two runs, and with what is no file or no text."""
    folder = tmp_path_factory.mktemp("hostile")
    made.plain_run(folder / "plain")
    made.paired_run(folder / "paired")
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zeros").symlink_to("/dev/zero")
    (folder / "bytes").write_bytes(b"\xff\xfe\x00{")
    (folder / "folder").mkdir()
    with (folder / "huge").open("wb") as file:
        file.truncate(2**40)
    return folder


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """Has tests run in a folder of their own, without credentials."""
    monkeypatch.chdir(tmp_path)
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def mutations(inputs):
    """Yields the inputs with one of them in the way."""
    for name, value in inputs.items():
        if isinstance(value, float):
            others = AMOUNTS
        else:
            others = {int: NUMBERS, list: LISTS}.get(type(value), TEXTS)
        for other in others:
            yield name, {**inputs, name: other}


def check(call, component, inputs):
    """Calls a component; what refuses it is one message that a terminal can show."""
    begun = time.monotonic()
    try:
        call(component, **inputs)
    except (UserError, NotPassed, PointFailed) as refused:
        said = str(refused)
        assert said.strip()
        assert len(said) < 2_100
        assert not any(ord(one) < 32 and one not in "\n\t" for one in said)
    assert time.monotonic() - begun < MOST_S


def test_every_component_is_tried():
    assert {one.name.replace("-", "_") for one in COMPONENTS} == INPUTS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_what_nobody_meant_is_one_message(call, place, name):
    component = getattr(importlib.import_module(f"orbax_bench_components.{name}"), name)
    for changed, inputs in mutations(INPUTS[name]):
        given = {key: placed(value, place) for key, value in inputs.items()}
        try:
            check(call, component, given)
        except BaseException as error:
            error.add_note(f"{name}: {changed}={str(given[changed])[:100]!r}")
            raise


def torn(path):
    data = path.read_bytes() if path.is_file() else b""
    clear(path)
    path.write_bytes(data[: len(data) // 2])


def clear(path):
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.away"))
    path.unlink(missing_ok=True)


def planted(plant):
    def change(path):
        clear(path)
        plant(path)

    return change


KINDS = {
    "folder": planted(lambda path: path.mkdir()),
    "pipe": planted(os.mkfifo),
    "device": planted(lambda path: path.symlink_to("/dev/zero")),
    "bytes": planted(lambda path: path.write_bytes(b"\xff\xfe\x00{")),
    "torn": torn,
}
SELDOM = sorted(KINDS.keys() - {"folder", "torn"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["folder", "torn", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in SELDOM)],
)
def test_a_damaged_run_directory_is_one_message(call, tmp_path, kind):
    names = ("run.json", "lineage.json", "records", "RECORD", "limits.json", "batches", "leases")
    for name in (*names, "tensorboard", "verdicts.json", "metrics.json", "samples.parquet"):
        run = tmp_path / name.replace(".", "_") / "run"
        run.parent.mkdir()
        made.paired_run(run)
        record = next(iter(sorted(run.glob("records/*/repeat_0/host_0.json"))))
        KINDS[kind](record if name == "RECORD" else run / name)
        for component in (compare_baseline, aggregate):
            try:
                check(call, component, {"output_directory": str(run)})
            except BaseException as error:
                error.add_note(f"{component.name}: {name}")
                raise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("run_sweep_point", {"point": "{", "output_directory": "PLACE/plain"}),
        ("inspect_checkpoint", {"checkpoint": "PLACE/pipe"}),
        ("plan_sweep", {"suite": "- " * 300, "output_directory": "PLACE/planned"}),
        ("publish_baseline", {"output_directory": "PLACE/plain", "registry": "PLACE/bytes"}),
        ("calibrate", {"runs": ["PLACE/loop"]}),
        ("soak", {"suite": made.PLAIN, "output_directory": "PLACE/soaked", "saves": -1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_container_says_it_in_one_message(place, tmp_path, name, inputs):
    given = {key: placed(value, place) for key, value in inputs.items()}
    ended = executed(name, tmp_path / "made", **given)
    assert ended.code == 2, ended.text
    assert 0 < sum(map(len, ended.said)) < 2_100
    assert "Traceback" not in ended.text
    assert ended.seconds < MOST_S
