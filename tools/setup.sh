# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by ./juno and tools/test, in the repository's root under "set -euo pipefail": installs packages, builds presets.
# Everything said here goes to stderr; stdout belongs to whoever sourced it.

say() { printf '%s\n' "$*" >&2; }

# need_packages AGREED AGREE GROUP...: installs what is missing of the groups in tools/packages.
# AGREED is 1 when nobody has to be asked; AGREE is what the user may type so.
need_packages() {
  local agreed=$1 agree=$2 wanted missing answer sudo=''
  shift 2
  command -v dpkg-query >/dev/null || return 0 # another distribution: cmake names what it does not find
  wanted=$(for group in "$@"; do sed -n "s/^$group: *//p" tools/packages; done)
  # shellcheck disable=SC2086 # a list of words
  missing=$(comm -23 <(printf '%s\n' $wanted | sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u) | xargs)
  [ -n "$missing" ] || return 0

  [ "$(id -u)" = 0 ] || sudo=sudo
  say "Juno needs packages that are not installed: $missing"
  if [ "$agreed" != 1 ]; then
    if [ ! -t 0 ] || [ ! -t 2 ]; then
      say "Type: $agree"
      say "  or: ${sudo:+sudo }apt-get install $missing"
      exit 1
    fi
    read -r -p "Install them now with ${sudo:+sudo }apt-get? [Y/n] " answer
    case $answer in [Nn]*) say "Nothing was installed."; exit 1 ;; esac
  fi
  if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
    say "Only root may install packages and there is no sudo here. As root, type: apt-get install $missing"
    exit 1
  fi
  say "Installing them; the log is build/packages.log"
  mkdir -p build
  # shellcheck disable=SC2086
  if ! { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing; } >build/packages.log 2>&1 </dev/null; then
    tail -n 15 build/packages.log >&2
    say "The packages could not be installed; the whole log is build/packages.log."
    exit 1
  fi
}

# build PRESET [TARGET...]: configures once, then lets ninja decide. Silent when there is nothing to do.
# The compiler's words go to build/PRESET.log; what failed first is shown.
build() {
  local preset=$1 log=build/$1.log started=$SECONDS lock
  shift
  mkdir -p build
  exec {lock}>"build/$preset.lock"
  flock "$lock" # two terminals, one build
  : >"$log"
  if [ ! -f "build/$preset/build.ninja" ]; then
    cmake --preset "$preset" >"$log" 2>&1 || build_failed "$preset"
  fi
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "build/$preset" "$@" 2>&1 | tee -a "$log" | show_progress "$preset"; then
    build_failed "$preset"
  fi
  if grep -qE '^\[[0-9/]+\] (Building|Linking)' "$log"; then say "Built $preset in $((SECONDS - started)) s"; fi
  exec {lock}>&-
}

build_failed() {
  say "build/$1 failed. From build/$1.log:"
  { sed -n '/^FAILED/,$p' "build/$1.log" | grep . || tail -n 40 "build/$1.log"; } | sed -n 1,40p >&2
  exit 1
}

# Turns ninja's lines into one line that moves on a terminal, elsewhere into one line when the first file is compiled.
show_progress() {
  local line begun=''
  while IFS= read -r line; do
    case $line in '['*/*']'*Building* | '['*/*']'*Linking*) ;; *) continue ;; esac
    if [ -t 2 ]; then
      printf '\r\033[KBuilding %s %s' "$1" "${line%%]*}]" >&2
    elif [ -z "$begun" ]; then
      say "Building $1"
    fi
    begun=1
  done
  if [ -n "$begun" ] && [ -t 2 ]; then printf '\r\033[K' >&2; fi
}
