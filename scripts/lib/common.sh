# Shared by every script of this folder: where things live, how progress and failure are told.
# Source it; it changes to the root of the checkout.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$ROOT"

# One per-user cache for libraries and build results; a fresh clone finds everything there again.
DEUT_CACHE="${DEUT_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set: set it, or DEUT_CACHE}/.cache}/deuteronomy}"

started_at=$SECONDS

elapsed() { printf '%02d:%02d' $(((SECONDS - started_at) / 60)) $(((SECONDS - started_at) % 60)); }
say() { printf '[%s] %s\n' "$(elapsed)" "$*"; }
die() {
  printf '[%s] FAILED: %s\n' "$(elapsed)" "$*" >&2
  exit 1
}

# run_logged NAME COMMAND...: runs quietly, its output in a log file. On failure says which step failed,
# shows the end of its log and where the whole log is.
run_logged() {
  local name="$1" log
  shift
  mkdir -p "$DEUT_CACHE/logs"
  log="$DEUT_CACHE/logs/${name//[^A-Za-z0-9._-]/_}.log"
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2 || true
    die "step '$name'. The whole log: $log"
  fi
}
