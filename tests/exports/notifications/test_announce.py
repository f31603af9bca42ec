"""Announcements: once per change of state, whatever becomes of the file, webhook or night."""

import datetime
import json
import os
import threading

import pytest
from etils import epath

from orbax_bench_core.errors import UserError
from orbax_bench_core.exports import last_states
from orbax_bench_core.exports.news import News
from orbax_bench_core.exports.notifications import Webhook, announce, webhook_at
from orbax_bench_core.files import read_if_there
from tests.support.bucket import bucket, served_bucket  # noqa: F401 - fixtures
from tests.support.processes import start_cli
from tests.support.verdicts import build_operation, build_point, build_report
from tests.support.webhook import webhook  # noqa: F401 - fixture

NIGHT = datetime.datetime(2026, 3, 2, 3, tzinfo=datetime.UTC)


def news(state, night=0, **fields):
    given = {
        "suite": "my suite",
        "state": state,
        "run_id": f"run{night}",
        "directory": f"/runs/{night}",
        "begun": NIGHT + datetime.timedelta(days=night),
        "lines": ("save is 1.21x",),
    }
    return News(**given | fields)


@pytest.fixture
def told(webhook, tmp_path):
    """Announces states, one a night; returns what was said."""
    said = []

    def tell(*states, first=0, at=None, folder=tmp_path, **options):
        for night, state in enumerate(states, first):
            one = state if isinstance(state, News) else news(state, night)
            place = None if folder is None else epath.Path(folder)
            announce(one, webhook_at(at or webhook.url), place, say=said.append, **options)
        return said

    return tell


@pytest.mark.parametrize(
    ("states", "announced"),
    [
        (["REGRESSION", "REGRESSION"], ["REGRESSION"]),
        (["PASS", "PASS", "REGRESSION", "PASS"], ["PASS", "REGRESSION", "PASS"]),
        (["FAILED", "FAILED", "REGRESSION"], ["FAILED", "REGRESSION"]),
        (["REGRESSION", "INCONCLUSIVE", "REGRESSION", "PASS"], ["REGRESSION", "PASS"]),
        (["INCONCLUSIVE"], []),
    ],
)
def test_each_change_is_announced_once(told, webhook, states, announced):
    told(*states)
    assert webhook.states == announced


def test_the_message_says_what_changed(told, webhook):
    told("PASS", "REGRESSION")
    assert webhook.posted[1][1] == {
        "version": 1,
        "suite": "my suite",
        "state": "REGRESSION",
        "before": "PASS",
        "run_id": "run1",
        "run_directory": "/runs/1",
        "text": "REGRESSION: my suite (it was PASS)",
        "lines": ["save is 1.21x"],
    }


def test_slack_gets_text_alone_with_its_signs_escaped(told, webhook):
    told(news("REGRESSION", lines=("a<b> & c", *("x" * 900,) * 30)), at=f"slack+{webhook.url}")
    [(_, message)] = webhook.posted
    assert set(message) == {"text"}
    assert (
        "*REGRESSION: my suite (its state before is unknown)*\na&lt;b&gt; &amp; c"
        in (message["text"])
    )
    assert "and 11 more" in message["text"]
    assert len(message["text"]) < 12_000


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 9}', b"\xff\xfe", None])
def test_a_missing_or_torn_file_means_unknown_and_announces(told, webhook, tmp_path, content):
    told("REGRESSION")
    [file] = tmp_path.iterdir()
    file.unlink() if content is None else file.write_bytes(content)
    told("REGRESSION", "REGRESSION", first=1)
    assert [message["before"] for _, message in webhook.posted] == [None, None]


def test_a_late_run_of_an_earlier_night_is_no_news(told, webhook):
    told("REGRESSION", first=5)
    told("PASS", first=4)
    told("REGRESSION", first=6)
    assert webhook.states == ["REGRESSION"]


def test_a_night_that_is_judged_again_announces_its_new_state(told, webhook):
    told("FAILED", first=5)
    told("PASS", first=5)
    assert webhook.states == ["FAILED", "PASS"]


def test_of_many_at_once_one_announces(webhook, tmp_path):
    start = threading.Barrier(8)

    def night(number):
        start.wait()
        announce(
            news("REGRESSION", number),
            webhook_at(webhook.url),
            epath.Path(tmp_path),
            say=lambda _: None,
        )

    threads = [threading.Thread(target=night, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert webhook.states == ["REGRESSION"]


def test_what_arrived_stays_so_where_another_run_finds_the_same_meanwhile(
    told, webhook, tmp_path, monkeypatch
):
    post, meanwhile = Webhook.post, []

    def posted(*given, **options):
        if not meanwhile:
            meanwhile.append(told("REGRESSION", first=1))
        return post(*given, **options)

    monkeypatch.setattr(Webhook, "post", posted)
    told("REGRESSION")
    assert webhook.states == ["REGRESSION"]
    [file] = tmp_path.iterdir()
    held = json.loads(file.read_text())
    assert (held["run_id"], held["delivered"]) == ("run1", True)


def test_a_webhook_that_refuses_is_a_warning_and_the_next_night_tries_again(told, webhook):
    webhook.status = 500
    [warning] = told("REGRESSION")
    assert warning.startswith("warning: http://127.0.0.1:")
    assert warning.endswith("was not notified: it answered 500")
    webhook.status = 200
    told("REGRESSION", "REGRESSION", first=1)
    assert webhook.states == ["REGRESSION"] * 2
    assert webhook.posted[1][1]["text"] == "REGRESSION: my suite (not delivered before)"


def test_one_that_died_while_it_announced_is_followed_by_the_next_night(told, webhook, tmp_path):
    told("REGRESSION")
    [file] = tmp_path.iterdir()
    state = json.loads(file.read_text())
    file.write_text(json.dumps(state | {"delivered": False, "claimed_at": NIGHT.isoformat()}))
    told("REGRESSION", first=1)
    assert webhook.states == ["REGRESSION"] * 2


def test_a_webhook_that_hangs_or_is_not_there_is_a_warning_in_time(told, webhook):
    webhook.hang_s = 10
    told("REGRESSION", timeout_s=0.05)
    [hangs, absent] = told("REGRESSION", first=1, at="http://127.0.0.1:1/S3CR3T")
    assert "no answer" in hangs or "timed out" in hangs or "TimeoutError" in hangs
    assert absent == "warning: http://127.0.0.1:1/… was not notified: Connection refused"


def test_redirects_are_not_followed(told, webhook):
    webhook.status = 302
    [warning] = told("REGRESSION")
    assert warning.endswith("it answered 302")
    assert [path for path, _ in webhook.posted] == ["/services/S3CR3T?key=S3CR3T"]


def test_a_state_that_cannot_be_kept_is_announced_and_said(told, webhook, tmp_path):
    (tmp_path / "file").touch()
    said = told("REGRESSION", folder=tmp_path / "file")
    assert said[0].startswith("warning: the last state of the suite is unknown")
    assert webhook.states == ["REGRESSION"]


def test_the_address_is_shown_nowhere(told, webhook, tmp_path):
    hook = webhook_at(webhook.url)
    webhook.status = 404
    said = told("REGRESSION", at=webhook.url)
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    shown = [repr(hook), str(hook), hook.shown, *said, kept]
    assert not [text for text in shown if "S3CR3T" in text]


@pytest.mark.parametrize(
    "given",
    [
        "S3CR3T",
        "ftp://host/S3CR3T",
        "https:///S3CR3T",
        "https://host:port/S3CR3T",
        "https://h/S3CR3T x",
        "https://[S3CR3T",
        "slack+S3CR3T",
        "https://h/S3CR3T\r\nX: y",
    ],
)
def test_what_is_no_address_is_one_message_without_it(given):
    with pytest.raises(UserError, match="https://HOST/PATH") as refused:
        webhook_at(given)
    assert "S3CR3T" not in str(refused.value)
    assert "S3CR3T" not in repr(refused.value.__cause__) + repr(refused.value.__context__)


def test_the_state_on_cloud_storage_is_replaced_by_its_generation(told, webhook, bucket):
    told("PASS", "REGRESSION", "REGRESSION", folder="gs://bucket/nightly")
    assert webhook.states == ["PASS", "REGRESSION"]
    [(name, (content, _))] = bucket.objects.items()
    assert name.startswith("nightly/notified-my-suite-")
    assert json.loads(content)["run_id"] == "run2"


def test_of_two_writers_on_cloud_storage_one_announces(told, webhook, bucket, monkeypatch):
    told("PASS", folder="gs://bucket/nightly")
    read = last_states.files.read_if_there
    first = []

    def read_as_another_writes(path):
        content = read(path)
        if not first:
            first.append(True)
            told("REGRESSION", first=1, folder="gs://bucket/nightly")
        return content

    monkeypatch.setattr(last_states.files, "read_if_there", read_as_another_writes)
    told("REGRESSION", first=2, folder="gs://bucket/nightly")
    assert webhook.states == ["PASS", "REGRESSION"]


@pytest.mark.nightly
def test_of_two_commands_at_once_one_announces_where_the_state_is_on_a_server(
    webhook, served_bucket, tmp_path
):
    slower = build_report(build_point("p", build_operation("save", "REGRESSION", 1.3)))
    (tmp_path / "verdicts.json").write_text(slower.model_dump_json())
    (tmp_path / "address").write_text(webhook.url)
    states = f"{served_bucket}/nightly"
    words = ("step", "enforce-verdict", "REGRESSION", "--verdicts", tmp_path / "verdicts.json")
    environment = {**os.environ, "ORBAX_BENCH_NOTIFY_STATE": states}
    commands = [
        start_cli(*words, "--notify", f"@{tmp_path / 'address'}", environment=environment)
        for _ in range(2)
    ]
    said = [command.communicate(timeout=120)[0] for command in commands]
    assert [command.returncode for command in commands] == [3, 3], said
    assert webhook.states == ["REGRESSION"], said
    held = read_if_there(last_states.state_file(epath.Path(states), slower.suite))
    assert json.loads(held)["delivered"]
