#!/bin/sh
# Records docs/first-session.cast anew: a first session, from real output. Play it: asciinema play FILE, or
# print it: docs/first-session.sh --print. Needs root, and CPU 1.
#
#   docs/first-session.sh [--print]
set -eu
cd "$(dirname "$0")"
cast=first-session.cast

if [ "${1-}" = --print ]; then
    # The third field of each event, its escapes undone.
    sed -n 's/^\[[0-9.]*, "o", "\(.*\)"\]$/\1/p' "$cast" |
        awk '{ gsub(/\\r\\n/, "\n"); gsub(/\\"/, "\""); gsub(/\\\\/, "\\"); printf "%s", $0 }'
    exit 0
fi

js=${JITTERSCOPE:-jitterscope}
JITTERSCOPE_RUNS=$(mktemp -d)
JITTERSCOPE_STATE=$JITTERSCOPE_RUNS/state
export JITTERSCOPE_RUNS JITTERSCOPE_STATE
back() {
    trap - EXIT
    "$js" tune rollback --yes >/dev/null 2>&1 || true
    rm -rf "$JITTERSCOPE_RUNS"
}
trap back EXIT
trap 'exit 130' HUP INT TERM

now=0
event() {
    # $1: seconds since the one before; $2: text, whose lines end with a carriage return on a terminal
    now=$(awk "BEGIN { print $now + $1 }")
    printf '%s\n' "$2" | awk -v at="$now" '
        { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "        "); text = text $0 "\\r\\n" }
        END { printf "[%s, \"o\", \"%s\"]\n", at, text }' >>"$cast.new"
}
# A command as it is typed, and what it prints.
session() {
    event 2 "# jitterscope $*"
    output=$("$js" "$@" 2>&1) || true
    event 1 "$output"
    # Time to read it.
    event 9 ""
}

printf '{"version": 2, "width": 80, "height": 24, "title": "jitterscope: a first session"}\n' >"$cast.new"
session doctor
session record -d 5s --label BEFORE
session report --worst 1
session tune plan --run BEFORE
session tune apply --yes --only cpuset-part,systemd-aff,kthread-aff --cpus 1
session record -d 5s --label AFTER
session diff BEFORE AFTER
session tune rollback --yes
mv "$cast.new" "$cast"
