#!/usr/bin/env bash
# Run the tests of the plug-in on real hosts, in an environment of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

VENV="$ROOT/.venv-hosts"
CONSTRAINTS="$ROOT/constraints-hosts.txt"
TEST_MODEL=SmolLM2-135M-Instruct

usage() {
  cat <<HELP
Usage: scripts/test_hosts.sh [PYTEST ARGUMENTS]

Makes .venv-hosts (Python 3.11 or 3.12; about 1.7 GB), installs LLM4AD there with the versions of constraints-hosts.txt,
gets $TEST_MODEL, and runs the tests in tests/hosts. It is an environment of its own because LLM4AD needs NumPy below 2.
EoH is on no package index: its tests run where EOH_REPO names clones of it, and are skipped with that advice elsewhere.

Options:
  --help   show this text; every other argument goes to pytest

Variables:
  EOH_REPO                one or more folders with a clone of https://github.com/FeiLiu36/EoH, separated by a colon: its
                          main branch is EoH 0.2, its tag v0.1 EoH 0.1

$SETUP_HELP

Examples:
  scripts/test_hosts.sh
  EOH_REPO=~/EoH:~/EoH-v0.1 scripts/test_hosts.sh
HELP
}

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  usage
  exit 0
fi

# Of what LLM4AD asks for, its search needs little: the rest is for its trackers and its windows.
install_hosts() {
  local stamp="$VENV/.eoh-esopt-setup-hosts" state
  state="$(setup_state)-$(cksum <"$CONSTRAINTS")"
  if [[ -f "$stamp" && "$(<"$stamp")" == "$state" ]]; then
    return
  fi
  install_torch
  say "installing LLM4AD and eoh-esopt into $VENV"
  pip_install --editable "$ROOT" pytest hypothesis joblib pytz requests tqdm
  pip_install --no-deps llm4ad
  printf '%s\n' "$state" >"$stamp"
}

make_venv
if ! "$VENV/bin/python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))'; then
  die "LLM4AD is tested with Python 3.11 or 3.12, its NumPy has no newer one: set PYTHON to one and remove $VENV"
fi
install_hosts
export HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
say "model $TEST_MODEL"
"$VENV/bin/eoh-esopt" model get "$TEST_MODEL"
cd "$ROOT"
say "pytest tests/hosts $*"
exec "$VENV/bin/python" -m pytest tests/hosts "$@"
