#!/usr/bin/env bash
# Puts what spscanner_lab/benchmarks/gpu.sh needs on a machine without a network into one folder of at most 60 MB.
#
#   PYTHON=.venv/bin/python spscanner_lab/benchmarks/gpu_wheels.sh WHEELS   in a clone with the development packages
#
# For an image with Python 3.12, PyTorch 2.11 and Triton 3.6: wheels of the packages of gpu_packages.txt and of what they
# need, NLTK's sentence model from llama-index-core and, if available, the original's outputs. all-MiniLM-L6-v2 is left out.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
model=$("$python" -c 'import importlib.util as u; print(u.find_spec("llama_index.core").submodule_search_locations[0])')
mkdir -p "$out/nltk_data/tokenizers/punkt_tab"

platforms=(manylinux_2_28_x86_64 manylinux_2_27_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64)
"$python" -m pip download --quiet --only-binary=:all: --python-version 3.12 --implementation cp \
    "${platforms[@]/#/--platform=}" -c constraints.txt -d "$out" -r spscanner_lab/benchmarks/gpu_packages.txt
# without its CUDA extensions it is pure Python, so one wheel fits every version
MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE \
    "$python" -m pip wheel --quiet --no-build-isolation --no-deps -w "$out" mamba-ssm==2.3.2.post1
cp -r "$model/_static/nltk_cache/tokenizers/punkt_tab/english" "$out/nltk_data/tokenizers/punkt_tab"
oracles=${SPSCANNER_ORACLES:-../shared/oracles}
if [ -d "$oracles" ]; then # without those that the tests contain
    cp -r "$oracles" "$out/oracles"
    chmod -R u+w "$out/oracles"
    rm -r "$out/oracles/checkpoints/"{long,two-groups}
fi

size=$(du -sm "$out" | cut -f1)
[ "$size" -le 60 ] || { echo "$out has $size MB; expected at most 60" >&2 && exit 1; }
echo "$out: $size MB"
