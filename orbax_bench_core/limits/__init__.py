"""Storage and memory limits: what this machine can do with a checkpoint's bytes, without Orbax."""
