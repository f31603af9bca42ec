"""Suite files on disk: their schema for editors, drafts, and those of Orbax's own framework."""

from orbax_bench_core.suite_files.schema import modeline, schema_text, suite_schema

__all__ = ["modeline", "schema_text", "suite_schema"]
