#!/usr/bin/env bash
# Runs the kernels' tests and the table of speeds on a GPU machine without a network, in less than nine minutes.
#
#   spscanner_lab/benchmarks/gpu.sh WHEELS OUT   in a clone; spscanner_lab/benchmarks/gpu_wheels.sh makes WHEELS
#   spscanner_lab/benchmarks/gpu.sh --trial      the same steps on any CPU: tiny shapes, kernels in Triton's interpreter; needs a network
#
# OUT gets a few small files, each written when its step is done: tests.xml and one JSON file for each shape. The machine
# needs Python, pip, PyTorch and Triton; everything else is installed into a temporary folder, and its own packages stay
# unchanged. Tests that cannot run end it with an error, before any speed is measured.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
export PYTHONPATH="$packages:$here${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1
export SPSCANNER_CACHE="$packages/cache" PYTEST_DISABLE_PLUGIN_AUTOLOAD=1

if [ "${1:-}" = --trial ]; then
    out=$(mktemp -d)
    # Triton 3.6 fails in its own interpreter with numpy 2.4
    grep -v ^numpy "$here/constraints.txt" > "$packages/constraints.txt"
    "$python" -m pip install --quiet --target "$packages" -c "$packages/constraints.txt" -r "$here/spscanner_lab/benchmarks/gpu_packages.txt" \
        triton==3.6.0 numpy==2.3.5 setuptools wheel
    MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE "$python" -m pip install --quiet --no-build-isolation --no-deps \
        --target "$packages" mamba-ssm==2.3.2.post1
    # for NLTK's sentence model alone, apart from what is imported
    "$python" -m pip install --quiet --no-deps --target "$packages/bundle" -c "$packages/constraints.txt" llama-index-core
    export NLTK_DATA="$packages/bundle/llama_index/core/_static/nltk_cache"
    export TRITON_INTERPRET=1
    sizes=(tiny) kinds=(mamba-ssm "plain mamba-ssm" torch)
    table=(--device cpu --dtype float32 --tokens 20 40 --repeats 1 --parts readings)
else
    wheels=$(realpath "$1") out=$(realpath -m "$2")
    "$python" -m pip install --quiet --no-index --no-deps --target "$packages" "$wheels"/*.whl
    export NLTK_DATA="$wheels/nltk_data" TRITON_CACHE_AUTOTUNING=1 # tuned once, for all processes of this run
    [ ! -d "$wheels/oracles" ] || export SPSCANNER_ORACLES="$wheels/oracles"
    sizes=(130m 1.3b default) kinds=(mamba-ssm "plain mamba-ssm" torch)
    # the rows with targets come first; rows that take longer than 5 s are left out
    table=(--device cuda --dtype bfloat16 --tokens 1000 10000 69000 250000 1000000 --longest 5)
fi
mkdir -p "$out"
cd "$here"

# A failing test is reported at the end, after the table. pytest's plug-ins are not needed. Tests that did not run, or
# were all skipped, end this now: speeds of kernels that nobody checked are worth nothing.
failed=0 minute=60
[ "${TRITON_INTERPRET:-}" = "" ] || minute=3600 # a busy CPU
timeout $((3 * minute)) "$python" -m pytest -q -p no:cacheprovider -o addopts=--import-mode=importlib \
    -W ignore::pytest.PytestConfigWarning --junitxml "$out/tests.xml" \
    "tests/lab/training/stages/test_evidence.py::test_recomputing_keeps_each_blocks_input_alone_and_the_gradients" \
    tests/mamba2/kernels/test_triton_interpret.py || failed=$?
"$python" -m spscanner_lab.benchmarks.gpu_tests "$out/tests.xml" || exit 1
for size in "${sizes[@]}"; do
    timeout $((2 * minute + 10)) "$python" -m spscanner_lab.benchmarks speed "${table[@]}" --sizes "$size" --kinds "${kinds[@]}" --budget $((2 * minute - 20)) \
        --out "$out/speed-$size.json" || failed=$?
done
ls -l "$out"
[ "$failed" = 0 ] || { echo "something failed ($failed): see above" >&2 && exit "$failed"; }
