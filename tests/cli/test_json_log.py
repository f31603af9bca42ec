import io
import json

from orbax_bench_core.cli.json_log import JsonLog
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.experiments import PairJudged
from tests.support.repeats import repeat_over
from tests.support.verdicts import make_operation, make_verdicts  # noqa: F401 - fixtures


def events(*progress):
    stream = io.StringIO()
    with JsonLog(stream) as log:
        for one in progress:
            log(one)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_warm_up_and_a_repeat_begin(make_point):
    found = events(Progress(point=make_point(), index=None), Progress(point=make_point(), index=3))
    assert [(event["event"], event["repeat"]) for event in found] == [
        ("warmup_started", None),
        ("repeat_started", 3),
    ]


def test_a_repeat_ends_with_the_seconds_of_its_slowest_host(make_point, make_record):
    records = {host: make_record(host=host, times={"save": 1.0 + host}) for host in (0, 1)}
    [event] = events(Progress(point=make_point(), index=0, repeat=repeat_over(records, 2)))
    assert (event["status"], event["seconds"], event["error"]) == ("passed", {"save": 2.0}, None)


def test_a_try_that_is_made_again_says_why(make_point):
    retry = Retry(point=make_point(), index=2, arm="candidate", block=1, reason="no", left=1)
    [event] = events(retry)
    assert (event["event"], event["repeat"], event["error"]) == ("repeat_retried", 2, "no")
    assert (event["arm"], event["block"], event["tries_left"]) == ("candidate", 1, 1)


def test_a_look_says_what_decided_and_what_is_left_open(make_operation, make_verdicts):
    verdict = make_verdicts("p", make_operation(), endpoint="failures", word="INCONCLUSIVE")
    [judged] = events(PairJudged(verdict=verdict))
    assert (judged["verdict"], judged["endpoint"]) == ("INCONCLUSIVE", "failures")
    assert judged["failures"] is None
    assert judged["operations"]["save"]["stalls"] is None
    assert judged["operations"]["save"]["low"] < judged["operations"]["save"]["ratio"]
