"""Signs of life of a session: how far it is, in a file and, of a step, in its log."""

import contextlib
import datetime
import threading
import time
from typing import Final, Self

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Event, Progress, Say, Session, Watcher, silent
from orbax_bench_core.leases import batch_name
from orbax_bench_core.records import Heartbeat
from orbax_bench_core.sweep import PairDesign, lives_of

_WHOLE: Final = "all"
"""Name of the part that is the whole run; a file `run.json` would be one of a run directory."""


class Beating(Watcher):
    """Watcher of a session that says each minute how far it is, and tells another watcher all.

    Without it, a step that hangs and one that takes long look the same for hours.
    """

    def __init__(self, session: Session, inner: Watcher) -> None:
        """Counts what `session` measures, and tells `inner` of every event as well."""
        ids = [entry.id for entry in session.entries]
        self._run = session.directory
        self._part = batch_name(ids) if session.step else _WHOLE
        self._say: Say = session.say if session.step else silent
        self._inner = inner
        self._gate, designs, more = session.info.gate, session.info.designs, session.info.more
        self._shared = {pair.id for pair in session.pairs if not designs[pair.id].lives}
        self._most = bool(session.pairs)
        self._points = len(ids)
        arms = sum(
            2 * max(designs[pair.id].last_look(self._gate), more.get(pair.id, 0))
            for pair in session.pairs
        )
        self._repeats = 0 if session.settings.soak else len(session.wanted) + arms
        self._each = session.info.num_repeats
        self._done: dict[str, int] = dict.fromkeys(ids, 0)
        self._measured = 0
        self._began = self._last = datetime.datetime.now(datetime.UTC)
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, daemon=True)

    def __enter__(self) -> Self:
        self._inner.__enter__()
        self._started = time.monotonic()
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()
        self._write()
        self._inner.__exit__(*raised)

    def __call__(self, event: Event) -> None:
        """Counts repeats that have ended."""
        if isinstance(event, Progress) and event.repeat is not None and event.index is not None:
            if event.life is not None and event.point.id in self._shared:
                # Its lives come after the operations of shared workers.
                self._shared.remove(event.point.id)
                more = lives_of(self._gate).last_look(self._gate)
                more -= PairDesign().last_look(self._gate)
                self._repeats += self._done[event.point.id] + 2 * more
            self._done[event.point.id] = self._done.get(event.point.id, 0) + 1
            self._measured += not event.reused
            self._last = datetime.datetime.now(datetime.UTC)
        self._inner(event)

    @property
    def beat(self) -> Heartbeat:
        """How far it is now."""
        done = dict(self._done)
        made = sum(done.values())
        left = None
        if self._measured and self._repeats:
            pace = (time.monotonic() - self._started) / self._measured
            left = max(0, self._repeats - made) * pace
        return Heartbeat(
            part=self._part,
            began_at=self._began,
            at=datetime.datetime.now(datetime.UTC),
            last_at=self._last,
            ended=self._ended.is_set(),
            points=self._points,
            points_done=0 if self._most else sum(n >= self._each for n in done.values()),
            repeats=self._repeats,
            repeats_done=made,
            most=self._most,
            left_s=left,
        )

    def _beat_on(self) -> None:
        while not self._ended.wait(Heartbeat.PERIOD_S):
            self._say(self._write().words)

    def _write(self) -> Heartbeat:
        beat = self.beat
        with contextlib.suppress(OSError, ImportError, UserError):  # the next one may arrive
            beat.write(self._run)
        return beat
