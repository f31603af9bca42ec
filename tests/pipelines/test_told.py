"""What a pipeline's command tells of a run directory, beside its console."""

import types

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.publishing import Notifiers, publish_verdicts
from orbax_bench_pipelines.cli.running import Told
from tests.support.verdicts import build_operation, build_point, build_report
from tests.support.webhook import webhook  # noqa: F401 - fixture

SLOWER = build_report(build_point("p", build_operation("save", "REGRESSION", 1.3)))


@pytest.fixture
def told(webhook, tmp_path):
    notifiers = Notifiers.of(webhook.url, str(tmp_path / "junit.xml"), {})
    return Told(notifiers, "nightly")


def job(name, **arguments):
    return types.SimpleNamespace(pipeline=types.SimpleNamespace(name=name), arguments=arguments)


@pytest.fixture
def judged(make_record, make_run):
    run = make_run([make_record()])
    publish_verdicts(run, SLOWER)
    return str(run.root)


def test_a_regression_pipeline_tells_its_verdict(told, judged, webhook, tmp_path):
    told.of(job("regression"), judged, "", 3)
    assert webhook.states == ["REGRESSION"]
    assert b'failures="1"' in (tmp_path / "junit.xml").read_bytes()


def test_a_comparison_of_frameworks_ends_well_whoever_is_slower(told, judged, webhook):
    told.of(job("framework-comparison"), judged, "", 0)
    assert webhook.states == ["PASS"]


def test_slices_have_states_and_files_of_their_own(told, judged, webhook, tmp_path):
    for folder in ("v5e-2x4", "v6e-2x4", "v5e-2x4"):
        told.of(job("regression"), judged, folder, 3)
    assert [message["suite"] for _, message in webhook.posted] == [
        "nightly on v5e-2x4",
        "nightly on v6e-2x4",
    ]
    assert (tmp_path / "junit-v6e-2x4.xml").exists()


def test_a_pipeline_that_broke_is_a_failure(told, webhook, tmp_path):
    told.of(job("regression"), str(tmp_path / "none"), "", 1, "the disk is full")
    assert webhook.states == ["FAILED"]
    assert webhook.posted[0][1]["lines"] == ["the disk is full"]


def test_steps_do_not_tell_it_as_well(webhook):
    environment = {"ORBAX_BENCH_NOTIFY": webhook.url, "GITHUB_STEP_SUMMARY": "x", "HOME": "/"}
    Notifiers.hidden(environment)
    assert environment == {"HOME": "/"}


def test_no_address_is_no_outlet():
    assert Notifiers.of(environment={}).webhook is None
    with pytest.raises(UserError):
        Notifiers.of(environment={"ORBAX_BENCH_NOTIFY": "nonsense"})
