"""Outcome of a benchmark that was run for a test."""

import dataclasses
import math

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import Record


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One repeat of one sweep point.

    Attributes:
        record: The record that a worker would have written.
    """

    record: Record

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Every value that was measured, also of a repeat that failed later."""
        return self.record.samples

    @property
    def operations(self) -> list[str]:
        """Names of the measured blocks, each once, in the order in which they first ended."""
        return list(dict.fromkeys(sample.operation for sample in self.samples))

    def value(self, operation: str, metric: str, occurrence: int = 0) -> float:
        """Returns one value.

        Args:
            operation: Name of the measured block.
            metric: `<namespace>/<name>`, for example `0_basics/time_s`.
            occurrence: Which block of that name, from 0.

        Raises:
            AssertionError: Nothing of that kind was measured; the message lists what was.
        """
        for sample in self.samples:
            if (sample.operation, sample.metric) == (operation, metric) and (
                sample.occurrence == occurrence
            ):
                return sample.value
        there = sorted({s.metric for s in self.samples if s.operation == operation})
        raise AssertionError(
            f"no {metric!r} of {operation!r}; "
            + (f"it has {there}" if there else f"operations: {self.operations}")
        )

    def assert_passed(self) -> None:
        """Checks that the repeat ran to its end.

        Raises:
            AssertionError: It failed, with the traceback of the benchmark, or was skipped.
        """
        if self.record.status == "passed":
            return
        error = self.record.error
        reason = "" if error is None else error.traceback or f"{error.type}: {error.message}"
        raise AssertionError(f"{self.record.point_name} {self.record.status}: {reason}")

    def assert_verified(self) -> None:
        """Checks that restored values were compared with what was saved or with a reference.

        Raises:
            AssertionError: The repeat failed, `context.verify` was never called, or what was loaded
                was only compared with another load of the same bytes.
        """
        self.assert_passed()
        verified = "none" if self.record.state is None else self.record.state.verified
        if verified == "none":
            raise AssertionError(
                f"{self.record.point_name} verified nothing; call context.verify(restored) outside "
                "the measured blocks"
            )
        if verified == "itself":
            raise AssertionError(
                f"{self.record.point_name} compared two loads of the same bytes only, which are "
                "wrong together; record a digest with the checkpoint (capture_digests_path), or "
                "compare with what was saved"
            )

    def assert_measured(self, *operations: str) -> None:
        """Checks that operations were measured, each with a time that can be a time.

        Args:
            *operations: Names of measured blocks.

        Raises:
            AssertionError: The repeat failed, or one of them is missing.
        """
        self.assert_passed()
        for operation in operations:
            seconds = self.value(operation, TIME)
            if not 0 <= seconds < math.inf:
                raise AssertionError(f"{operation!r} took {seconds} seconds")
