#!/usr/bin/env bash
# Make .venv in the repository root and install this package there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<HELP
Usage: scripts/setup_env.sh [--dev]

Makes .venv in the repository root and installs eoh-esopt there, with the tested versions of constraints.txt. Nothing
outside .venv is changed. Quick when nothing changed since the last time.

Options:
  --dev    also install the development tools (pytest, mypy, ruff, ...)
  --help   show this text

$SETUP_HELP
HELP
}

extra=""
for option in "$@"; do
  case "$option" in
    --dev) extra=dev ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) die "unknown option $option; see scripts/setup_env.sh --help" ;;
  esac
done

setup "$extra"
say "ready: $VENV/bin/eoh-esopt"
