# Functions that the scripts of this folder share; sourced by them, never run.
#
# A complete Python tree contains the file .complete, which is written last. A tree without it is
# left over from an interrupted run, and is removed and made again.
# shellcheck shell=bash

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck disable=SC2034 # used by the scripts that source this file
pythons_dir=$checkout/build/pythons
started=$SECONDS

say() { # prints progress with the seconds so far, as the long steps are silent
    printf '%s: %4d s: %s\n' "${0##*/}" "$((SECONDS - started))" "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Runs a step without showing its output; the error message after a failure names the log.
quietly() { # LOG COMMAND...
    local log=$1
    shift
    "$@" >>"$log" 2>&1 </dev/null
}

# Two runs at the same time (two terminals, parallel tests) would write into one tree. The second
# one waits, and then finds the tree complete.
lock_tree() { # DIR
    mkdir -p "$(dirname "$1")"
    exec 9>"$(dirname "$1")/.lock-$(basename "$1")"
    flock -n 9 || {
        say "another run is writing the same folder; waiting"
        flock 9
    }
}

# Prints the Debian archive that this machine already installs from, according to apt; that also
# works behind a company's mirror. Other distributions have no such entry; there it is the default
# of debootstrap. KPYTRACE_DEBIAN_MIRROR overrides both.
debian_mirror() {
    if [[ -n ${KPYTRACE_DEBIAN_MIRROR:-} ]]; then
        echo "$KPYTRACE_DEBIAN_MIRROR"
        return
    fi
    local uri
    uri=$(apt_debian_uri)
    if [[ -z $uri ]] && grep -qs '^ID=debian' /etc/os-release; then
        # Images often have no package lists, from which apt learns an archive's origin.
        "${as_root[@]}" apt-get -qq update >/dev/null 2>&1 </dev/null || true
        uri=$(apt_debian_uri)
    fi
    # A list of mirrors in a file (cloud images): use its first entry.
    case $uri in
    mirror+file:*) uri=$(awk '$1 ~ /^http/ { print $1; exit }' "${uri#mirror+file:}") ;;
    esac
    if [[ -z $uri ]]; then
        uri=$(awk '$1 == "default_mirror" { print $2; exit }' /usr/share/debootstrap/scripts/sid \
            2>/dev/null || true)
    fi
    [[ -n $uri ]] || die "cannot find the address of a Debian archive; set KPYTRACE_DEBIAN_MIRROR"
    echo "${uri%/}"
}

apt_debian_uri() {
    # shellcheck disable=SC2016 # apt expands the dollar
    apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | awk 'NR == 1' || true
}

as_root=()
[[ $(id -u) == 0 ]] || as_root=(sudo -n)
