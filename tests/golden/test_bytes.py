"""Every file that users keep, byte for byte."""

import json
import re

import pytest

from tests.golden import made, support


@pytest.fixture
def same_bytes(golden):
    """Compares a file with the golden data, and what it says after it was read and written."""

    def compare(kind, name, text):
        golden(f"bytes/{name}.json", text)
        assert support.written_again(kind, text) == text

    return compare


def test_records(same_bytes, golden, tmp_path):
    files = made.plain_run(tmp_path)
    for kind, file in files.items():
        same_bytes("record", f"record_{kind}", file.read_text())
    found = sorted(str(file.relative_to(tmp_path)) for file in files.values())
    golden("bytes/files_of_records.txt", "".join(f"{name}\n" for name in found))


def test_the_record_of_an_arm(same_bytes, tmp_path):
    files = made.paired_run(tmp_path, blocks=1)
    arms = {json.loads(file.read_text())["arm"]: file for file in files[:4]}
    for arm, file in sorted(arms.items()):
        same_bytes("record", f"record_{arm}", file.read_text())


@pytest.mark.parametrize("name", ["PLAIN", "SKIPPING", "PAIRED", "SAME"])
def test_run_json(same_bytes, tmp_path, name):
    support.start_run(tmp_path, getattr(made, name))
    same_bytes("run", f"run_{name.lower()}", (tmp_path / "run.json").read_text())


def test_limits(same_bytes, tmp_path):
    support.start_run(tmp_path, made.PLAIN)
    support.write_limits(tmp_path, made.LIMITS)
    same_bytes("limits", "limits", (tmp_path / "limits.json").read_text())


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_a_registry(same_bytes, golden, tmp_path, arm):
    registry, paired = tmp_path / "a registry", tmp_path / "a pair"
    made.paired_run(paired, blocks=1)
    label = ("--label", "v1") if arm == "candidate" else ()
    support.said(
        "baseline",
        "capture",
        registry,
        paired,
        "--arm",
        arm,
        *label,
        "--promote",
        "--note",
        "a “b”",
    )
    files = {file.relative_to(registry): file for file in registry.rglob("*.json")}
    names = [support.dated(str(name)) for name in files]
    names = [re.sub(r"-[0-9a-f]{8}\.json$", "-0123abcd.json", name) for name in names]
    golden(f"bytes/files_of_registry_{arm}.txt", "".join(f"{name}\n" for name in sorted(names)))
    kinds = {"promotion": [], "capture": [], "baseline": []}
    for name, file in sorted(files.items()):
        depth = len(name.parts)
        kind = "promotion" if name.parts[0] == "promotions" else ["capture", "baseline"][depth - 2]
        kinds[kind].append(support.dated(file.read_text()))
    (capture,), (promotion,) = kinds["capture"], kinds["promotion"]
    same_bytes("capture", f"capture_{arm}", capture)
    said = json.loads(promotion)
    promotion = promotion.replace(said["id"], support.PROMOTION_ID)
    for name, value in said["by"].items():
        promotion = promotion.replace(f'"{name}": "{value}"', f'"{name}": "its {name}"')
    same_bytes("promotion", f"promotion_{arm}", promotion)
    same_bytes("baseline", f"baseline_{arm}", kinds["baseline"][0])


@pytest.mark.slow
def test_passport(same_bytes, golden, tmp_path):
    for day, blocks in enumerate((5, 10)):
        folder = tmp_path / f"run {day}"
        made.paired_run(folder, made.SAME, blocks=blocks, ratio=1, run_id=f"run{day}", day=day)
    file = tmp_path / "passport.json"
    tests = support.said("calibrate", tmp_path, "--save", file, "--json")
    same_bytes("passport", "passport", support.rounded(support.dated(file.read_text())))
    tests = support.dated(tests.replace(str(tmp_path), "/data"))
    golden("bytes/calibration.json", support.rounded(tests))


@pytest.mark.slow
def test_async_study(same_bytes, tmp_path):
    made.study_run(tmp_path)
    support.said("async-study", tmp_path)
    text = (tmp_path / "async_study.json").read_text()
    same_bytes("async_study", "async_study", support.rounded(text))


@pytest.mark.slow
def test_verdicts_of_separate_runs(same_bytes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day, ratio in enumerate((1, 1.25)):
        made.paired_run(tmp_path / f"run{day}", ratio=ratio, run_id=f"run{day}", day=day)
    text = support.said("compare", "run0", "run1", "--json")
    text = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    same_bytes("verdicts", "verdicts_unpaired", support.rounded(support.dated(text)))


@pytest.mark.slow
def test_history(golden, tmp_path):
    for day in range(10):
        given = {"blocks": 1, "ratio": 1.5 if day > 5 else 1.25, "run_id": f"r{day}", "day": day}
        made.paired_run(tmp_path / f"run{day:02}", made.ONE, **given)
    text = support.said("history", tmp_path, "--json").replace(str(tmp_path), "/data")
    golden("bytes/history.json", support.rounded(text))


def test_lineage(same_bytes, tmp_path):
    plain = tmp_path / "a run"
    made.plain_run(plain)
    support.write_limits(plain, made.LIMITS)
    support.said("report", plain)
    same_bytes("lineage", "lineage", made_here((plain / "lineage.json").read_text()))


@pytest.mark.slow
def test_verdicts_and_their_lineage(same_bytes, tmp_path):
    paired = tmp_path / "a pair"
    made.paired_run(paired)
    support.said("report", paired)
    support.publish_verdicts(paired)
    verdicts = support.rounded(support.dated((paired / "verdicts.json").read_text()))
    same_bytes("verdicts", "verdicts", verdicts)
    same_bytes("lineage", "lineage_paired", made_here((paired / "lineage.json").read_text()))


def made_here(text):
    """Returns a lineage without digests of what other libraries wrote, or the day, and versions."""
    made_with, ran, rest = text.partition('"ran"')
    for name, one in json.loads(text)["made"].items():
        if name != "records":
            made_with = made_with.replace(one["digest"], f"sha256 of {name}")
        for package, version in one["versions"].items():
            made_with = made_with.replace(f'"{package}": "{version}"', f'"{package}": "1.2.3"')
    return made_with + ran + rest
