#!/usr/bin/env bash
# Run the tests, the ones with the small model included.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TEST_MODEL=SmolLM2-135M-Instruct

usage() {
  cat <<HELP
Usage: scripts/test.sh [PYTEST ARGUMENTS]

Sets up .venv with the development tools, installs bubblewrap and tesseract-ocr by apt-get where they are missing (as root
or by sudo), gets $TEST_MODEL (once; it is cached), and runs pytest. The Hugging Face hub is not asked unless
HF_HUB_OFFLINE=0 is set, so that every machine tests the same copy of the model.

Options:
  --help   show this text; every other argument goes to pytest

$SETUP_HELP

Examples:
  scripts/test.sh
  scripts/test.sh -x tests/models
  scripts/test.sh -m "not model"
HELP
}

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  usage
  exit 0
fi

export HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
setup dev
install_programs bwrap:bubblewrap tesseract:tesseract-ocr
say "model $TEST_MODEL"
"$VENV/bin/eoh-esopt" model get "$TEST_MODEL"
cd "$ROOT"
say "pytest $*"
exec "$VENV/bin/python" -m pytest "$@"
