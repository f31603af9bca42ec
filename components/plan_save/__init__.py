"""The plan-save component."""

from orbax_bench_components.answers import plan_save as plan_save
