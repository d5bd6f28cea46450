#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Debian packages: tools/install_packages.sh SET..., each SET a file in tools/packages.
# Does nothing, and asks for no privileges, when all of them are there.
set -euo pipefail
cd "$(dirname "$0")/packages"

fail() {
  echo "install_packages: $*" >&2
  exit 1
}

[ $# -gt 0 ] || fail "say which sets: $(ls | sed 's/\.txt$//' | xargs)"
for set in "$@"; do
  [ -f "$set.txt" ] || fail "no set '$set'; there are: $(ls | sed 's/\.txt$//' | xargs)"
done
mapfile -t wanted < <(grep -hv '^#' "${@/%/.txt}" | sort -u)

command -v dpkg-query apt-get >/dev/null ||
  fail "this is not Debian; install what corresponds to: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "neither root nor sudo; ask somebody to run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
}

echo "installing ${#missing[@]} packages: ${missing[*]}"
install() { apt install --yes --no-install-recommends "${missing[@]}" >/dev/null; }
# Lists that know the packages may still be so old that the files they name are gone.
if apt-cache show "${missing[@]}" >/dev/null 2>&1 && install; then exit 0; fi
apt update || fail "could not fetch the lists of packages"
install || fail "could not install: ${missing[*]}"
