#!/bin/sh
# Leaves byte code of what steps import, and of nothing else: that of all packages is twice as large.
# Runs in the image's own environment while it is built, with its `bin` as the one argument.
#
# What is missing is compiled whenever it is imported: slower, and never wrong.
set -eu

PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME="$work" JAX_PLATFORMS=cpu COLUMNS=100
unset PYTHONDONTWRITEBYTECODE
cd "$work"

cat > sweep.yaml <<'SUITE'
suite_name: warm-up
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
gate: {looks: [10]}
benchmarks: [{generator: save_restore, options: {async_enabled: [true, false]}}]
SUITE

quietly() {
  "$@" > log 2>&1 || { cat log >&2; exit 1; }
}

quietly orbax-bench step plan-sweep sweep.yaml -o swept
quietly orbax-bench step generate-checkpoint sweep.yaml
quietly orbax-bench run sweep.yaml -o swept
quietly orbax-bench step aggregate -o swept
quietly orbax-bench step study-async -o swept
quietly orbax-bench step publish-baseline registry -o swept --revision warm-up
quietly orbax-bench lineage swept
quietly orbax-bench best swept
{ cat sweep.yaml; echo 'arms: {}'; } | sed 's/\[true, false\]/true/' > arms.yaml
# Arms that are the same are told apart at times, and that is no reason to have no image.
orbax-bench ab arms.yaml -o compared --allow-inconclusive > log 2>&1 || [ $? -eq 3 ] || { cat log >&2; exit 1; }
quietly orbax-bench step compare-baseline -o compared
quietly orbax-bench calibrate compared
orbax-bench doctor > log 2>&1 || true
quietly python -c 'from orbax_bench_core.records import load_run; load_run("swept").samples()'

# What steps import on a service, each where its extra is there.
export _KFP_RUNTIME=true
for module in kfp.dsl.executor_main gcsfs google.cloud.storage kubernetes.client \
  google.cloud.aiplatform_v1 pathwaysutils flax.nnx safetensors; do
  python -c "import $module" > /dev/null 2>&1 || true
done
