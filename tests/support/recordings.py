"""Recordings of jobs, line by line, as a recorder would write them."""

import json

from orbax_bench_core.recorder import METADATA_WAIT

NOON = 1.7e9
TS = "/jax/orbax/write/background_ts_duration_secs"
D2H = "/jax/orbax/write/blocking_d2h_duration_secs"
RAW = "/jax/orbax/write/worker/io/raw/gbytes"


class Job:
    """Lines of a job that steps each 0.1 s and saves each 10 s; the keys of a save may be given."""

    def __init__(self, folder, *, host=0, hosts=1, begin=NOON, pid=7):
        self.folder, self.host = folder / "recording", host
        self.begin = self.t = begin
        self.saves = 0
        self.lines = [
            {"line": "life", "format": 1, "t": begin, "host": host, "hosts": hosts, "pid": pid}
            | {"node": f"node-{host}", "devices": 8}
        ]

    def write(self, *, close=True, torn=""):
        if close:
            self.lines.append({"line": "close", "t": self.t})
        file = self.folder / f"host_{self.host:05d}" / f"{self.begin:.0f}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{json.dumps(line)}\n" for line in self.lines)
        file.write_text(text + torn)
        return self

    def train(self, seconds=10.0, step=0.1):
        count = round(seconds / step)
        first = round((self.t - NOON) * 1000)
        self.lines.append({"line": "steps", "n": first, "t": self.t, "s": [step] * count})
        self.t += seconds
        return self

    def save(
        self,
        *,
        call=0.2,
        behind=2.0,
        waited=0.0,
        own=1.5,
        held=0.0,
        d2h=0.1,
        rss=100.0,
        ends=True,
        path="",
        **more,
    ):
        self.saves += 1
        number = 100 * self.saves
        begin = {"id": self.saves, "what": "save", "step": number, "path": path or f"/ck/{number}"}
        begin |= {"t": self.t, "background": True}
        self.lines.append({"line": "begin", **begin})
        if ends:
            events = {TS: [1, own, own, "async_save"], D2H: [1, d2h, d2h, "MainThread"]}
            events[METADATA_WAIT] = [1, held, held, "array_type_handler"]
            events[RAW] = [1, 0.5, 0.5, "array_type_handler"]
            levels = [round(rss * 2**20), round((rss + 30) * 2**20), round(rss * 2**20)]
            end = {"state": "committed", "call_s": call, "waited_s": waited, "rss": levels}
            end |= {"total_s": call + behind, "events": events} | more
            self.lines.append({"line": "end", **begin, **end})
        self.t += call
        return self

    def saves_of(self, count, **more):
        for _ in range(count):
            self.save(**more).train()
        return self
