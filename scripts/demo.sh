#!/usr/bin/env bash
# From a fresh checkout to a finished search: set-up, model, run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TASK=tsp_construct
MODEL="${MODEL:-Qwen2.5-Coder-0.5B-Instruct}"
BUDGET="${BUDGET:-440}"
DIRECTIONS=10
OUT="${OUT:-$ROOT/runs/demo-$(date +%Y%m%d-%H%M%S)}"
QUICK_MODEL=SmolLM2-135M-Instruct
QUICK_BUDGET=216
QUICK_DIRECTIONS=8

usage() {
  cat <<HELP
Usage: scripts/demo.sh [--quick] [RUN OPTIONS]

Sets up .venv, gets the model, and runs a search on $TASK in which the model learns. It learns in scope norms (the gains
of its norm layers), the scope in which a small model learns within minutes on a CPU. On two cores it takes under 20
minutes after the downloads. Options that are not known here go to \`eoh-esopt run\`.

Options:
  --quick   the smallest model and a small budget: $QUICK_MODEL, $QUICK_BUDGET candidates; under 5 minutes
  --help    show this text

Variables:
  MODEL                   name, hub id or folder of the model; now $MODEL
  BUDGET                  number of candidates; now $BUDGET
  OUT                     new folder for the run; now $OUT

$SETUP_HELP

Examples:
  scripts/demo.sh --quick
  MODEL=SmolLM2-135M-Instruct scripts/demo.sh --seed 7
HELP
}

run_options=()
for option in "$@"; do
  case "$option" in
    --quick)
      MODEL="$QUICK_MODEL"
      BUDGET="$QUICK_BUDGET"
      DIRECTIONS="$QUICK_DIRECTIONS"
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) run_options+=("$option") ;;
  esac
done

setup
say "model $MODEL"
"$VENV/bin/eoh-esopt" model get "$MODEL"
say "searching $TASK with a budget of $BUDGET candidates"
exec "$VENV/bin/eoh-esopt" run "$TASK" --model "$MODEL" --method esopt-eoh --scope norms --budget "$BUDGET" --seed 1 \
  --population 4 --directions "$DIRECTIONS" --samples-per-direction 4 --max-new-tokens 80 --out "$OUT" \
  ${run_options[@]+"${run_options[@]}"}
