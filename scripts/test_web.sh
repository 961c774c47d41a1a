#!/usr/bin/env bash
# Run the tests of the web adapter in real browsers.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<HELP
Usage: scripts/test_web.sh [PYTEST ARGUMENTS]

Makes the environments of the web adapter (scripts/setup_web.sh) and runs the tests in tests/web in headless Chromium,
on the sites that are shipped, on MiniWoB++ and on made-up ones. About six minutes on two cores.

Options:
  --help   show this text; every other argument goes to pytest

$SETUP_HELP

Examples:
  scripts/test_web.sh
  scripts/test_web.sh -k oracle
HELP
}

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  usage
  exit 0
fi

setup dev
"$ROOT/scripts/setup_web.sh"
cd "$ROOT"
say "pytest tests/web $*"
exec "$VENV/bin/python" -m pytest tests/web "$@"
