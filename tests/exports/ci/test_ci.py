"""What a CI system reads: JUnit's XML, and the summary of a step."""

import xml.etree.ElementTree as ET

import pytest

from orbax_bench_core.exports.ci import append_step_summary, junit_xml

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def read(report):
    """Outcome of each case by class and name, of a file that Jenkins' schema would take."""
    root = ET.fromstring(junit_xml(report))
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    found = {}
    for suite in root:
        cases = suite.findall("testcase")
        for case in cases:
            key = (case.attrib["classname"], case.attrib["name"])
            assert key not in found  # GitLab shows one of two cases of the same name
            assert float(case.attrib["time"]) >= 0
            tags = [child.tag for child in case if child.tag != "system-out"]
            assert len(tags) <= 1
            found[key] = tags[0] if tags else "passed"
        said = list(found.values())
        for attribute in ("failures", "errors", "skipped"):
            assert int(suite.attrib[attribute]) == said.count(attribute.rstrip("s"))
        assert int(suite.attrib["tests"]) == len(cases)
        assert {name: root.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
            name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")
        }
    return found


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("PASS", "passed"), ("REGRESSION", "failure"), ("INCONCLUSIVE", "skipped")],
)
def test_a_word_is_an_outcome(make_report, make_verdicts, make_operation, word, outcome):
    report = make_report(make_verdicts("p", make_operation("save", word)))
    assert read(report) == {("p", "save"): outcome}


def test_everything_at_once_is_read(eventful):
    found = read(eventful)
    assert set(found.values()) == {"passed", "failure", "error", "skipped"}
    assert found["save_restore[a=2]", "all operations"] == "error"


def test_the_time_is_the_candidates_median(make_report, make_verdicts, make_operation):
    operation = make_operation("save", times={"baseline": (1.0,), "candidate": (2.0, 4.0, 3.0)})
    root = ET.fromstring(junit_xml(make_report(make_verdicts("p", operation))))
    assert root.find(".//testcase").attrib["time"] == "3.000000"


def test_what_decides_a_point_and_is_no_operation_is_a_case(
    make_report, make_verdicts, make_operation
):
    point = make_verdicts(
        "p", make_operation("save"), word="REGRESSION", endpoint="failures", reason="9 of 10 failed"
    )
    assert read(make_report(point)) == {("p", "save"): "passed", ("p", "all operations"): "failure"}


def test_a_warning_and_an_exploration_fail_nothing(make_report, make_verdicts, make_operation):
    apart = make_verdicts("p", make_operation("save", "REGRESSION", 2.0), mode="unpaired")
    assert read(make_report(apart)) == {("p", "save"): "skipped"}
    far = make_operation("save", "REGRESSION", 5.8, verdict={"beyond_runs": True})
    beyond = make_report(make_verdicts("p", far, mode="unpaired"))
    assert read(beyond) == {("p", "save"): "failure"}
    slower = make_operation("save", "REGRESSION", 2.0)
    explored = make_report(make_verdicts("p", slower, exploratory=True), exploratory="other rules")
    assert read(explored) == {("p", "save"): "skipped"}


def test_nothing_compared_and_files_left_out_are_errors(make_report):
    found = read(make_report(left_out=("records/x: torn",)))
    assert set(found.values()) == {"error"}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("name", "written"),
    [("p\x07<&>\"'", "p?<&>\"'"), ("p\x9b2J\u202eq\u2028", "p\\x9b2J\\u202eq\\u2028")],
)
def test_characters_of_no_xml_are_replaced_and_those_that_a_terminal_obeys_written_out(
    make_report, make_verdicts, make_operation, name, written
):
    operation = make_operation("save", "REGRESSION", None, reason="\x1b[31mred\x00\x1b[0m \ud800")
    root = ET.fromstring(junit_xml(make_report(make_verdicts(name, operation))))
    assert root.find(".//testcase").attrib["classname"] == written


def test_more_than_github_shows_is_cut_between_characters(tmp_path):
    page = tmp_path / "summary"
    append_step_summary("–" * 500_000, str(page))
    data = page.read_bytes()
    assert len(data) <= 1024 * 1024
    assert data.decode().endswith("the rest is in verdicts.md of the run directory.\n")
