#!/usr/bin/env bash
# The paper's searches with a budget of 2000 candidates, by one method, on all tasks.
set -euo pipefail
BUDGET_NAME=2000
source "$(dirname "${BASH_SOURCE[0]}")/ahd.sh"

run_ahd "$@"
