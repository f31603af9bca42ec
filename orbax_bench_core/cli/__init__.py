"""The `orbax-bench` command, one file per sub-command."""
