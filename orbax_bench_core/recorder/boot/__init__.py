"""A folder for `PYTHONPATH`, whose `sitecustomize` attaches the recorder.

Its modules are imported at the start of every Python there, so that they import next to nothing.
"""

from orbax_bench_core.recorder.boot._orbax_bench_imports import ImportHook as ImportHook
