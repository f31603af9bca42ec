"""The plan-save component."""

from orbax_bench_components.plan_save.component import plan_save as plan_save
