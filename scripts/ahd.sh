# What run_ahd_1000.sh and run_ahd_2000.sh share; to be sourced, not run, after BUDGET_NAME is set.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PRESET="${PRESET:-ahd-$BUDGET_NAME}"
TASKS="${TASKS:-tsp_construct kp_construct asp_construct aco_tsp aco_cvrp aco_bpp}"
REPS="${REPS:-3}"
SEED="${SEED:-2024}"
OUT="${OUT:-$ROOT/runs/$PRESET}"

ahd_usage() {
  cat <<HELP
Usage: scripts/run_ahd_$BUDGET_NAME.sh {eoh|sample|esopt-eoh|esopt-sample} [RUN OPTIONS]

Searches the tasks with the paper's budget of $BUDGET_NAME candidates, several times with different seeds, each run in
OUT/TASK/METHOD/seed-SEED. Finished runs are not run again and others go on, so the script can be stopped and given again
at any moment. A run that fails says why, and the rest goes on; the exit code is 1 then. Options that are not known here
go to \`eoh-esopt run\`, over what the preset says. To work on several GPUs at once: eoh-esopt sweep paper

Options:
  --help   show this text

Variables:
  TASKS     which tasks, separated by spaces; now $TASKS
  REPS      repetitions; now $REPS
  SEED      seed of the first repetition, the others follow; now $SEED
  MODEL     name, hub id or folder of the model; now ${MODEL:-that of the preset}
  BACKEND   what runs it: transformers, vllm, served or openai; now ${BACKEND:-transformers}
  PRESET    \`eoh-esopt preset list\` or a file; ahd-smoke is a small model on a CPU; now $PRESET
  OUT       folder for all runs; now $OUT

$SETUP_HELP

Examples:
  PRESET=ahd-smoke REPS=1 TASKS=tsp_construct scripts/run_ahd_$BUDGET_NAME.sh esopt-eoh
  BACKEND=vllm scripts/run_ahd_$BUDGET_NAME.sh esopt-eoh
  MODEL=./my-model REPS=5 scripts/run_ahd_$BUDGET_NAME.sh eoh --temperature 1.0
HELP
}

# run_cell TASK SEED FOLDER [RUN OPTIONS]: begin the run, or go on with it.
run_cell() {
  local program=("$VENV/bin/eoh-esopt" run)
  if [[ -f "$3/events.jsonl" ]]; then
    "${program[@]}" --resume "$3"
  else
    "${program[@]}" "$1" --preset "$PRESET" --method "$METHOD" ${MODEL:+--model "$MODEL"} ${BACKEND:+--backend "$BACKEND"} \
      --seed "$2" --out "$3" "${@:4}"
  fi
}

run_ahd() {
  local task repetition folder failed=() code=0
  case "${1:-}" in
    -h | --help)
      ahd_usage
      exit 0
      ;;
    eoh | sample | esopt-eoh | esopt-sample) METHOD="$1" ;;
    *) die "the method is '${1:-}', not eoh, sample, esopt-eoh or esopt-sample; see --help" ;;
  esac
  [[ "$REPS" =~ ^[1-9][0-9]*$ ]] || die "REPS is '$REPS', not a whole number above 0"
  [[ "$SEED" =~ ^[0-9]+$ ]] || die "SEED is '$SEED', not a whole number"
  setup
  for ((repetition = 0; repetition < REPS; repetition++)); do
    for task in $TASKS; do
      folder="$OUT/$(basename "$task" .py)/$METHOD/seed-$((SEED + repetition))"
      if [[ -f "$folder/summary.json" ]] && tail -n 1 "$folder/events.jsonl" | grep -q '^{"event": "end"'; then
        say "$folder is finished already"
        continue
      fi
      say "$folder"
      code=0
      run_cell "$task" $((SEED + repetition)) "$folder" "${@:2}" || code=$?
      ((code != 130)) || exit 130
      ((code == 0)) || failed+=("$folder")
    done
  done
  if ((${#failed[@]} > 0)); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
  fi
  say "compare the methods with: eoh-esopt compare $OUT"
}
