#!/usr/bin/env bash
# Make the environments of the web adapter: browsers, and the benchmark's scorer.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CONSTRAINTS="$ROOT/constraints-web.txt"

usage() {
  cat <<HELP
Usage: scripts/setup_web.sh

Makes .venv-web (Python 3.10 to 3.12; BrowserGym on Playwright, the pages of MiniWoB++ and the tasks of WebArena and
WebArena-Lite; about 250 MB) and .venv-webscore (Python 3.11 or newer; webarena-verified; about 90 MB). They are
environments of their own because of what they pin. Installs Debian's Chromium by apt-get where there is no Chromium.

Options:
  --help   show this text

Variables:
  PYTHON               the Python that makes both; default: the first one found
  EOH_ESOPT_CHROMIUM   program of the browser; default: chromium, chromium-browser or google-chrome

Examples:
  scripts/setup_web.sh
  PYTHON=python3.12 scripts/setup_web.sh
HELP
}

case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  "") ;;
  *) usage >&2; die "unknown option $1" ;;
esac

install_chromium() {
  local name
  for name in "${EOH_ESOPT_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [[ -n "$name" ]] && command -v "$name" >/dev/null; then
      return
    fi
  done
  command -v apt-get >/dev/null || die "there is no Chromium: install one, or let EOH_ESOPT_CHROMIUM name it"
  say "installing Debian's Chromium"
  apt-get install -y --no-install-recommends chromium >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends chromium >&2; } ||
    die "Chromium could not be installed: install it as root (apt-get install chromium), or let EOH_ESOPT_CHROMIUM name one"
}

# environment FOLDER OLDEST BELOW: afterwards VENV is the environment there. Fails where it is complete already.
environment() {
  VENV="$ROOT/$1"
  make_venv
  "$VENV/bin/python" -c 'import sys; sys.exit(not sys.argv[1] <= "3.%02d" % sys.version_info[1] < sys.argv[2])' "$2" "$3" ||
    die "$1 needs Python ${2/.0/.} or newer and below ${3/.0/.}: set PYTHON to one and remove $VENV"
  local stamp="$VENV/.eoh-esopt-setup-web"
  [[ ! -f "$stamp" || "$(<"$stamp")" != "$(cksum <"$CONSTRAINTS")" ]]
}

finished() { cksum <"$CONSTRAINTS" >"$VENV/.eoh-esopt-setup-web"; }

install_chromium
if environment .venv-web 3.10 3.13; then
  say "installing BrowserGym, MiniWoB++ and the tasks of WebArena into $VENV"
  pip_install browsergym-core
  pip_install --no-deps miniwob libwebarena browsergym-webarenalite # for their pages and tasks alone
  finished
fi
if environment .venv-webscore 3.11 3.99; then
  say "installing webarena-verified into $VENV"
  pip_install webarena-verified
  finished
fi
