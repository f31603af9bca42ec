"""The study-async component."""

from orbax_bench_components.answers import study_async as study_async
