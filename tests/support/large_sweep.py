"""The pages of a sweep of 200 points, made from records by hand."""

import itertools
import math
import random

import pytest

from orbax_bench_core.analysis.best import Observer, best_document, best_of
from orbax_bench_core.analysis.summary import ExtraColumns, summarize, summary_document
from orbax_bench_core.measure import Sample
from orbax_bench_core.pages import to_html
from orbax_bench_core.records import repeats_of

REPEATS = 4
OPTIONS = {
    "use_ocdbt": (True, False),
    "use_zarr3": (True, False),
    "use_compression": (True, False),
    "chunk_byte_size": tuple(2**power for power in range(10, 35)),
}
STAGES = {
    "2_save_breakdown/directory_creation_s": 0.05,
    "2_save_breakdown/blocking_d2h_s": 0.2,
    "2_save_breakdown/worker_io_s": 0.5,
    "2_save_breakdown/ocdbt_merge_s": 0.1,
}


@pytest.fixture
def large_sweep(once, make_run, make_record, make_point):
    """Report and choice of 200 points, one of whose repeats took a thousand times as long."""

    def make():
        points = []
        for values in itertools.product(*OPTIONS.values()):
            options = dict(zip(OPTIONS, values, strict=True))
            label = ",".join(f"{name}={value}" for name, value in options.items())
            points.append(make_point(options=options, label=f"{label},ckpt=w"))
        draw = random.Random(1)
        records = []
        for number, point in enumerate(points):
            for repeat in range(REPEATS):
                noise = math.exp(draw.gauss(0, 0.05)) * (1000 if number == repeat == 0 else 1)
                save = (0.2 + 0.001 * number) * noise
                times = {"save_blocking": save / 3, "save": save, "load": save / 2}
                record = make_record(point, repeat, times=times, sizes={"save": 2**30})
                stages = [
                    Sample("save", 0, name, share * save, "s") for name, share in STAGES.items()
                ]
                records.append(record.model_copy(update={"samples": (*record.samples, *stages)}))
        info = make_run([], points=points, num_repeats=REPEATS, folder="large").read_info()
        observer, repeats = Observer(info.expansion.plain), list(repeats_of(records))
        for repeat in repeats:
            observer.add(repeat)
        summary = summarize(repeats)
        keys = [(one.time.point_id, one.time.operation) for one in summary.operations]
        limits = ExtraColumns(
            headings=("limit", "of limit", "vs TensorStore"),
            cells=dict.fromkeys(keys, ("write + fsync", "12 %", "3.45x")),
            legend="Limit: what the machine must do at least.",
        )
        answer = best_document(best_of(info, observer), "/runs/large")
        report = summary_document(
            info,
            summary,
            "/runs/large",
            example=records[0],
            extra=limits,
            answers={"Best options": answer},
            files={"samples.parquet": "every sample", "verdicts.html": "its verdicts"},
        )
        return {"report": to_html(report), "best": to_html(answer)}

    return once("the pages of a large sweep", make)
