"""The machines of a run, as its report names them."""

from orbax_bench_core.analysis.summary.hosts import HostFinder


def found(make_record, *hosts):
    """Returns the lines on hosts, each given as its index and what it says of itself."""
    finder = HostFinder()
    for index, host in hosts:
        finder.add(make_record(host=index, num_hosts=2, provenance={"host": host}))
    return finder.found()


def test_one_machine_that_was_started_once_is_no_news(make_record):
    assert found(make_record, (0, {"name": "a"}), (0, {"name": "a"})) == ()


def test_each_host_is_named_with_its_place_and_what_came_in_between(make_record):
    pod = {"name": "pod-1", "node": "gke-1", "node_pool": "v5e", "restarts": "2"}
    lines = found(
        make_record,
        (0, {"name": "a", "node": "a"}),
        (1, pod),
        (1, {"name": "pod-1b", "rejoined": "1"}),
    )
    again = "started again 2 times by its launcher, started again 1 time during the run"
    assert lines == (
        "host 0: a",
        f"host 1: pod-1 (node gke-1, pool v5e) and pod-1b, {again}",
    )


def test_a_host_that_does_not_say_what_it_is_is_passed_over(make_record):
    assert found(make_record, (0, "unknown")) == ()
