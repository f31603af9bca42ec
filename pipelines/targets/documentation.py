"""Tables of the page of settings, from their model: keys, targets, meanings and refusals."""

from collections.abc import Iterator

from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.honoured import HONOURED, OF_STEPS, REASONS
from orbax_bench_pipelines.targets.settings import Settings
from orbax_bench_pipelines.targets.values import StepSettings

_CONDITIONS = {
    (Target.VERTEX, "cpu"): "without a launcher",
    (Target.VERTEX, "memory"): "without a launcher",
    **{
        (Target.VERTEX, name): "with a launcher"
        for name in ("spot", "reservation", "flex_start", "max_run_s")
    },
    (Target.KFP, "ephemeral_storage"): "with a launcher",
    (Target.KFP, "launcher_settings"): "with a launcher",
    (Target.VERTEX, "launcher_settings"): "with a launcher",
    (Target.DOCKER, "steps"): "`image`, `retries`",
    (Target.VERTEX, "steps"): "no `timeout_s`",
}
_WRITER = "python -m orbax_bench_pipelines.compile"


def settings_page(page: str) -> str:
    """Returns the page with its tables written again, each between the comments with its name."""
    targets = " | ".join(target.value for target in Target)
    rule = "|---" * len(Target)
    below = (
        f"| `{name}` | {' | '.join('yes' * (name in OF_STEPS[target]) for target in Target)} |"
        for name in StepSettings.model_fields
    )
    reasons = (f"| {target.value} | `{name}` | {reason} |" for (target, name), reason in _reasons())
    tables = {
        "keys": [f"| key | {targets} | meaning |", f"|---{rule}|---|", *_rows()],
        "keys of steps": [f"| key | {targets} |", f"|---{rule}|", *below],
        "refusals": ["| target | key | reason |", "|---|---|---|", *reasons],
    }
    for name, lines in tables.items():
        head, begin, rest = page.partition(f"<!-- {name}: {_WRITER} -->\n")
        _, end, tail = rest.partition(f"\n<!-- end of {name} -->")
        page = "".join([head, begin, "\n", *(f"{line}\n" for line in lines), end, tail])
    return page


def _rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        honoured = (
            _CONDITIONS.get((target, name), "yes") if name in HONOURED[target] else ""
            for target in Target
        )
        yield f"| `{name}` | {' | '.join(honoured)} | {field.description} |"


def _reasons() -> list[tuple[tuple[Target, str], str]]:
    order = list(Settings.model_fields)
    return sorted(REASONS.items(), key=lambda each: (each[0][0], order.index(each[0][1])))
