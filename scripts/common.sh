# Set-up shared by the scripts; to be sourced, not run. Makes .venv in the repository root and installs this package
# there, editable and with the versions of constraints.txt. Quick when nothing changed since the last time.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
CONSTRAINTS="$ROOT/constraints.txt"
CPU_INDEX="https://download.pytorch.org/whl/cpu"

# shellcheck disable=SC2034  # shown by the scripts that source this file
SETUP_HELP="Set-up variables:
  PYTHON                  the Python (3.10 or newer) that makes .venv; default: the first one found
  EOH_ESOPT_TORCH_INDEX   package index PyTorch is installed from, for instance one with builds for your GPU; default:
                          on Linux without an NVIDIA GPU PyTorch's own CPU index where it answers within 3 s, else the
                          index pip is configured with
  EOH_ESOPT_CACHE         folder that models are kept in; default: the user's cache folder"

say() { printf '== %s\n' "$*" >&2; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

python_is_usable() {
  "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

find_python() {
  local candidate
  if [[ -n "${PYTHON:-}" ]]; then
    python_is_usable "$PYTHON" || die "PYTHON=$PYTHON is not a Python 3.10 or newer with the venv module"
    printf '%s\n' "$PYTHON"
    return
  fi
  for candidate in python3 python3.13 python3.12 python3.11 python3.10 python; do
    if python_is_usable "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "no Python 3.10 or newer with the venv module found: install one, or set PYTHON to its path"
}

make_venv() {
  local python
  if "$VENV/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
    return
  fi
  python="$(find_python)"
  say "making $VENV with $("$python" --version)"
  "$python" -m venv --clear "$VENV"
}

# Hash of everything the installed packages depend on.
setup_state() {
  "$VENV/bin/python" - "$ROOT" "${EOH_ESOPT_TORCH_INDEX:-}" <<'PYTHON'
import hashlib, pathlib, sys

root = pathlib.Path(sys.argv[1])
digest = hashlib.sha256(repr((sys.version, *sys.argv[1:])).encode())
for name in ("pyproject.toml", "constraints.txt"):
    digest.update((root / name).read_bytes())
print(digest.hexdigest())
PYTHON
}

pip_install() {
  local quiet=()
  [[ -t 2 && -z "${CI:-}" ]] || quiet=(--quiet)
  PIP_ROOT_USER_ACTION=ignore "$VENV/bin/python" -m pip install ${quiet[@]+"${quiet[@]}"} \
    --disable-pip-version-check --no-input -c "$CONSTRAINTS" "$@" >&2
}

index_answers() {
  timeout 3 "$VENV/bin/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=3)' "$1" \
    >/dev/null 2>&1
}

# PyTorch first, where it has to come from an index of its own.
install_torch() {
  if "$VENV/bin/python" -c 'from importlib.metadata import version; version("torch")' >/dev/null 2>&1; then
    return
  fi
  if [[ -n "${EOH_ESOPT_TORCH_INDEX:-}" ]]; then
    say "installing PyTorch from EOH_ESOPT_TORCH_INDEX=$EOH_ESOPT_TORCH_INDEX"
    pip_install --index-url "$EOH_ESOPT_TORCH_INDEX" torch
  elif [[ "$(uname -s)" == Linux ]] && ! command -v nvidia-smi >/dev/null 2>&1; then
    if index_answers "$CPU_INDEX/torch/"; then
      say "no NVIDIA GPU: installing the CPU build of PyTorch from $CPU_INDEX"
      pip_install --index-url "$CPU_INDEX" torch || say "that failed; going on with pip's configured index"
    else
      say "no NVIDIA GPU, and PyTorch's CPU index does not answer: taking PyTorch from pip's configured index"
    fi
  fi
}

# setup [EXTRA]: afterwards $VENV/bin has eoh-esopt and, with EXTRA "dev", the development tools.
setup() {
  local extra="${1:-}" stamp state
  make_venv
  stamp="$VENV/.eoh-esopt-setup${extra:+-$extra}"
  state="$(setup_state)"
  if [[ -f "$stamp" && "$(<"$stamp")" == "$state" ]]; then
    return
  fi
  install_torch
  say "installing eoh-esopt${extra:+ with the extra $extra} into $VENV"
  pip_install --editable "$ROOT${extra:+[$extra]}"
  printf '%s\n' "$state" >"$stamp"
}

# install_programs COMMAND:PACKAGE...: Debian's packages of the commands that are missing. Where they cannot be installed,
# says which, and goes on.
install_programs() {
  local wanted missing=() become=()
  for wanted in "$@"; do
    command -v "${wanted%%:*}" >/dev/null 2>&1 || missing+=("${wanted#*:}")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  [[ "$(id -u)" == 0 ]] || become=(sudo -n)
  say "installing ${missing[*]} by apt-get"
  apt_get() { ${become[@]+"${become[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get "$@" >/dev/null; }
  if ! { apt_get install -y --no-install-recommends "${missing[@]}" ||
    { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; }; }; then
    say "that failed. Install them yourself, as root: apt-get install ${missing[*]}"
  fi
}
