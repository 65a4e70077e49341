# shellcheck shell=bash
# Sourced by the other scripts: where things are, how they report, how they
# fail. Sets root (the checkout) and deps_dir (what setup builds).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# Several checkouts may share one dependency folder through the environment.
deps_dir=${TRACEFS_DEPS_DIR:-$root/build/deps}
mkdir -p "$deps_dir"
deps_dir=$(cd "$deps_dir" && pwd -P)
export TRACEFS_DEPS_DIR=$deps_dir

self=$(basename "$0")
current_step="start"
next_action="read the message above"
current_log=

say() { printf '%s: %s\n' "$self" "$*"; }
warn() { printf '%s: warning: %s\n' "$self" "$*" >&2; }

# step WHAT NEXT: names the work that follows and what its failure calls for.
step() {
  current_step=$1
  next_action=$2
  say "$1"
}

# fail MESSAGE...: gives up on the current step. Status 3: the system refused.
fail() {
  printf '%s: %s\n' "$self" "$*" >&2
  report_failure
  exit 3
}

report_failure() {
  if [[ -n $current_log && -s $current_log ]]; then
    printf '%s: last lines of %s:\n' "$self" "$current_log" >&2
    tail -n 20 "$current_log" | sed 's/^/    /' >&2
  fi
  printf '%s: FAILED step: %s\n' "$self" "$current_step" >&2
  printf '%s: next: %s\n' "$self" "$next_action" >&2
}

# logged NAME COMMAND...: runs COMMAND with its output in a log that is shown
# only when something goes wrong.
logged() {
  mkdir -p "$deps_dir/log"
  current_log=$deps_dir/log/$1.log
  shift
  # 9 is setup's lock; a service that apt starts must not inherit it.
  "$@" >"$current_log" 2>&1 </dev/null 9>&- || return
  current_log=
}

# shellcheck disable=SC2154  # status is set inside the string
trap 'status=$?; trap - ERR; report_failure; exit "$status"' ERR
set -E
