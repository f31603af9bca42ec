"""The workflow of Argo, walked as Argo does: templates, parameters, a pod for each item."""

import json
import re

import pytest
import yaml

from orbax_bench_core.exit_codes import RETRIED, Exit
from tests.support.processes import FAKE_CLI, ROOT, plain_environment, start_cli

WORKFLOW = yaml.safe_load((ROOT / "examples" / "argo" / "sweep.yaml").read_text())
TEMPLATES = {template["name"]: template for template in WORKFLOW["spec"]["templates"]}
TASKS = TEMPLATES["sweep"]["dag"]["tasks"]
SUITE = """
suite_name: argo
num_repeats: 1
benchmarks:
- {generator: tests.support.scripted.Scripted, options: {save_s: [0.01, 0.02]}}
checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}
"""


def test_a_step_is_tried_again_where_that_may_help():
    expression = TEMPLATES["measure"]["retryStrategy"]["expression"]
    [codes] = re.findall(r"\[(.*)\]", expression)
    killed, ended = 137, 143
    assert set(json.loads(f"[{codes}]")) == {*RETRIED, Exit.INTERRUPTED, killed, ended}


def test_a_lost_step_fails_the_run_and_an_exit_handler_reports():
    tasks = {task["name"] for task in TASKS}
    assert {task["depends"] for task in TASKS[1:]} <= tasks, "a task waits for more than successes"
    assert TEMPLATES[WORKFLOW["spec"]["onExit"]]["container"]["command"][2] == "finish"


@pytest.mark.nightly
@pytest.mark.slow
def test_its_commands_in_its_order_leave_a_complete_run(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    alone = plain_environment(LOCK_FILE=str(tmp_path / "lock"))
    known = {"workflow.name": "run", "workflow.uid": "1"}
    known["workflow.parameters.suite"] = str(tmp_path / "suite.yaml")
    known |= {"workflow.parameters.runs": str(tmp_path)}
    known["workflow.status"] = "Succeeded"
    for task in [*TASKS, {"name": "onExit", "template": WORKFLOW["spec"]["onExit"]}]:
        template = TEMPLATES[task["template"]]
        assert template["container"]["command"][:2] == ["orbax-bench", "step"]
        items = json.loads(_filled(task.get("withParam", '[""]'), known))
        for item in items:
            given = {**known, "item": item, "/tmp/points.json": str(tmp_path / "points.json")}
            for one in task.get("arguments", {}).get("parameters", ()):
                given[f"inputs.parameters.{one['name']}"] = _filled(one["value"], given)
            words = [*template["container"]["command"][1:], *template["container"]["args"]]
            process = start_cli(
                *(_filled(word, given) for word in words), cli=FAKE_CLI, environment=alone
            )
            out, _ = process.communicate(timeout=120)
            assert process.returncode == 0, out
        for one in template.get("outputs", {}).get("parameters", ()):
            written = tmp_path / one["valueFrom"]["path"].removeprefix("/tmp/")
            known[f"tasks.{task['name']}.outputs.parameters.{one['name']}"] = written.read_text()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    assert (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / "ending.md").read_text().startswith("# ✓ PASS")


def _filled(text, known):
    """Returns a text with its parameters filled in; one that is unknown is an error."""
    text = known.get(text, text)
    return re.sub(r"\{\{(.*?)\}\}", lambda found: known[found[1]], text)
