"""The step run-sweep-point, whose workers are fakes: POINT and DIR; it prints its records."""

import json
import sys

from orbax_bench_core.engine import run_batch
from orbax_bench_core.execute import LocalHost, RunSettings
from tests.support.fake_worker import MODULE

if __name__ == "__main__":
    point, directory = sys.argv[1:]
    settings = RunSettings(host=LocalHost(module=MODULE))
    info, by_point = run_batch([point], directory, settings=settings, limits=False, lock=False)
    (records,) = by_point.values()
    found = [[record.repeat, record.host, record.status] for record in records]
    print(json.dumps({"run": info.run_id, "records": sorted(found)}))
