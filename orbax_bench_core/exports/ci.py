"""JUnit XML of a comparison, as GitLab, Jenkins and GitHub's test reports read it.

A test case is a primary operation of a point, and its time the median of the candidate. REGRESSION
is a failure, INCONCLUSIVE is skipped, what could not be compared is an error. What decides no exit
code fails no test: arms that were measured apart, and an exploration, are skipped with a word.
"""

import re
import statistics
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis import verdicts
from orbax_bench_core.config import GateConfig
from orbax_bench_core.errors import presentable

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""

_APART: Final = "measured apart: this is a warning, no proof"
_WHOLE: Final = "all operations"
"""Test case of what decides a point and is no operation's own, such as its failed attempts."""


def junit_xml(report: verdicts.VerdictReport) -> bytes:
    """Returns the verdicts of a report as a JUnit file, UTF-8.

    A REGRESSION is a failure; what failed or was left out is an error; what is INCONCLUSIVE or
    exploratory is skipped.
    """
    suite = ET.Element("testsuite", name=_clean(report.suite))
    for point in report.points:
        _add_point(suite, point, report.gate)
    for line in report.left_out:
        _case(suite, report.suite, "records", "error", f"left out: {line}")
    if not report.points:
        _case(suite, report.suite, "comparison", "error", verdicts.headline(report).text)
    cases = suite.findall("testcase")
    counts = {"tests": len(cases)}
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[attribute] = sum(case.find(tag) is not None for case in cases)
    seconds = sum(float(case.get("time", 0)) for case in cases)
    totals = {name: str(count) for name, count in counts.items()} | {"time": f"{seconds:.6f}"}
    suite.attrib.update(totals | {"timestamp": f"{report.judged_at:%Y-%m-%dT%H:%M:%S}"})
    root = ET.Element("testsuites", {"name": "orbax-bench", **totals})
    root.append(suite)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_point(suite: ET.Element, point: verdicts.PointVerdict, gate: GateConfig) -> None:
    """Adds the primary operations of a point, and the point itself where they do not say it all."""
    primary = [operation for operation in point.operations if operation.primary]
    for operation in primary:
        found = operation.verdict
        told = verdicts.operation_told(operation, point, gate)
        outcome, message = _outcome(point, found.word, told, beyond=found.beyond_runs)
        seconds = operation.times.get("candidate", ())
        time = statistics.median(seconds) if seconds else 0.0
        _case(suite, point.point, operation.operation, outcome, message, _ratio(operation), time)
    if point.failed:
        _case(suite, point.point, _WHOLE, "error", verdicts.why(point.reason))
    elif all(operation.verdict.word != point.word for operation in primary):
        outcome, message = _outcome(point, point.word, verdicts.told(point, gate).text)
        _case(suite, point.point, _WHOLE, outcome, message)


def _outcome(
    point: verdicts.PointVerdict, word: str, said: str, *, beyond: bool = False
) -> tuple[str, str]:
    """Returns the element that a word becomes, empty for none, and its message."""
    if point.is_study:
        return "", ""  # an answer, whichever is slower
    if point.exploratory:
        return "skipped", f"exploratory: {word} by rules that were changed after the data"
    if word == "REGRESSION" and point.mode == "unpaired" and not beyond:
        return "skipped", f"{_APART}: {said}"
    tag = {"REGRESSION": "failure", "INCONCLUSIVE": "skipped"}.get(word, "")
    return tag, f"{word}: {said}"


def _ratio(operation: verdicts.OperationVerdict) -> str:
    verdict = operation.verdict
    changed = verdicts.change(verdict)
    interval = "" if verdict.low is None and verdict.high is None else ", 95 % interval"
    return "" if changed == "–" else f"candidate against baseline{interval}: {changed}"


def _case(
    suite: ET.Element,
    point: str,
    name: str,
    outcome: str,
    message: str,
    details: str = "",
    time: float = 0.0,
) -> None:
    attributes = {"classname": _clean(point), "name": _clean(name), "time": f"{time:.6f}"}
    case = ET.SubElement(suite, "testcase", attributes)
    if outcome:
        attributes = {"message": _clean(message)}
        if outcome != "skipped":
            attributes["type"] = "REGRESSION" if outcome == "failure" else "NotCompared"
        ET.SubElement(case, outcome, attributes).text = _clean(details) or None
    elif details:
        ET.SubElement(case, "system-out").text = _clean(details)


def _clean(text: str) -> str:
    """Returns a text without what XML cannot hold, or a terminal would obey."""
    return presentable(_FORBIDDEN.sub("?", text))


_ROOM: Final = 1024 * 1024
"""Bytes that GitHub shows of one step; it drops all of a summary that is longer."""
_CUT: Final = "\n\n…the rest is in verdicts.md of the run directory.\n"


def append_step_summary(text: str, place: str) -> None:
    """Adds Markdown to the summary page of this job, cut to the room that it has.

    Args:
        text: Markdown.
        place: The file that GitHub names in `GITHUB_STEP_SUMMARY`.

    Raises:
        OSError: It cannot be written.
    """
    data = text.rstrip("\n").encode() + b"\n\n"
    path = Path(place)
    left = _ROOM - (path.stat().st_size if path.exists() else 0)
    if len(data) > left:
        cut = _CUT.encode()
        data = data[: max(0, left - len(cut))].decode(errors="ignore").encode() + cut
    with path.open("ab") as file:
        file.write(data)
