pytest_plugins = ["orbax_bench_core.testing.plugin"]
