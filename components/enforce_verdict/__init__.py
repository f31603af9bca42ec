"""The enforce-verdict component."""

from orbax_bench_components.enforce_verdict.component import enforce_verdict as enforce_verdict
