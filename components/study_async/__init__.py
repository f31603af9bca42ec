"""The study-async component."""

from orbax_bench_components.study_async.component import study_async as study_async
