# shellcheck shell=bash
# Sourced by the scripts that try what was packaged, after common.sh: another
# Debian in a folder, in mount and pid namespaces of its own. They set `given`,
# their arguments, and may set `keep`.

# shellcheck disable=SC2154  # of common.sh
self_path=$root/scripts/$self
keep=${keep:-}

# fresh_system TARBALL SUITE PACKAGE,...: makes it at $new, with $place beside it
# for logs. TARBALL, if there is a name, is where the minimal system is, or is put.
fresh_system() {
  if [[ -z ${TRACEFS_ENTERED:-} ]]; then
    export TRACEFS_ENTERED=1
    # shellcheck disable=SC2154  # of the script
    exec unshare --mount --propagation private --pid --fork --kill-child \
      --mount-proc "$self_path" "${given[@]}"
  fi
  local base=$1
  place=$(mktemp -d)
  chmod 755 "$place"
  trap leave_system EXIT
  new=$place/root
  mkdir "$new"
  mount -t tmpfs -o size=3G tracefs-check "$new"
  if [[ -z $base || ! -e $base ]]; then
    step "making a minimal Debian ($2)" "check the network and apt's sources"
    base=${base:-$place/base.tar}
    logged mmdebstrap mmdebstrap --variant=minbase --include="$3" "$2" "$base" \
      "$(sed -n 's/^URIs: *\(.*\/debian\)\/*$/\1/p' \
        /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)"
  fi
  step "unpacking it" "give another --base"
  tar -xf "$base" -C "$new"
  cp /etc/resolv.conf "$new/etc/" 2>/dev/null || true
  rm -f "$new/etc/dpkg/dpkg.cfg.d/"*docker* "$new/dev/fuse"
  mount --rbind /dev "$new/dev"
  mount -t proc proc "$new/proc"
  mount -t sysfs -o ro sys "$new/sys"
}

leave_system() {
  umount -R -l "$place/root" 2>/dev/null || true
  [[ -n $keep ]] || rm -rf "$place"
}

# What fails if it succeeds: of `! COMMAND` bash itself does not care.
readonly prelude='not() { if "$@"; then return 1; fi; }
'

# inside SCRIPT: in the new system; its first failure is ours. It has `not`.
inside() {
  chroot "$new" /usr/bin/env -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    bash -euxo pipefail -c "$prelude$1" >"$place/log" 2>&1 || {
    tail -n 30 "$place/log" | sed 's/^/    /' >&2
    fail "it does not"
  }
}

check() { step "$1" "see the lines above"; }
