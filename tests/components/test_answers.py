"""Components that answer a question: what they write and return, and what they refuse."""

from pathlib import Path

import pytest

from orbax_bench_components import answers
from orbax_bench_core.errors import UserError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def test_an_answer_is_written_as_json_markdown_and_a_page(call):
    made = call(answers.plan_save, source="llama-8b@0.01")
    assert made["Output"] == []
    assert '"stored_bytes"' in Path(made["answer"].path).read_text()
    assert Path(made["report"].path).read_text().startswith("<!doctype html>")
    assert made["summary"].metadata["orbax_bench_type"] == "plan-summary"


@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("best", {}, "is not a run directory"),
        ("calibrate", {}, "does not exist"),
        ("study_async", {}, "is not a run directory"),
        ("inspect_checkpoint", {"checkpoint": "/none"}, "does not exist"),
        ("plan_save", {"source": "llama-9b"}, "unknown model"),
        ("soak", {"suite": SUITE, "saves": 5}, "gives no verdict"),
        ("recovery", {"suite": SUITE}, "training_job"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, tmp_path, name, inputs, said):
    component = getattr(answers, name)
    place = str(tmp_path / "none")
    given = {**inputs, **({"runs": [place]} if name == "calibrate" else {})}
    if "output_directory" in component.component_spec.inputs:
        given["output_directory"] = place
    with pytest.raises(UserError, match=said):
        call(component, **given)
