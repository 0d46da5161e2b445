#!/bin/sh
# The tuning steps as one walk: a BASELINE, then step by step a change, a measurement and a check that the
# culprit is gone; at the end, and however it ends, everything as it was. What is refused ends the walk, so that
# no AFTER is ever that of a machine on which nothing was changed.
set -eu

usage() {
    cat <<'TEXT'
usage: walk.sh --cpus LIST [--duration TIME] [--steps STEP,...] [--skip STEP,...]

  --cpus LIST      CPUs to be left undisturbed; another one must be left for all else
  --duration TIME  how long to measure each time [30s]
  --steps STEP,... these only [isolation,vmstat,watchdog,workqueues,interrupts,rcu,governor]
  --skip STEP,...  not these: what this machine cannot do ends the walk otherwise

As root. Runs are kept in a folder of their own, which is named at the end. The program is $JITTERSCOPE, else
jitterscope.
TEXT
}

fail() {
    echo "walk: $*" >&2
    exit 1
}

js=${JITTERSCOPE:-jitterscope}
cpus='' duration=30s skip='' steps=isolation,vmstat,watchdog,workqueues,interrupts,rcu,governor
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --cpus | --duration | --steps | --skip) [ $# -gt 1 ] || { usage >&2; exit 2; } ;;
        *) usage >&2; exit 2 ;;
    esac
    case $1 in
        --cpus) cpus=$2 ;;
        --duration) duration=$2 ;;
        --steps) steps=$2 ;;
        --skip) skip=$2 ;;
    esac
    shift 2
done
[ -n "$cpus" ] || { usage >&2; exit 2; }

# What a step changes, and what may be left of its culprit: shares of the measured time.
knobs_of() {
    case $1 in
        isolation) echo cpuset-part,systemd-aff,kthread-aff ;;
        vmstat) echo vmstat ;;
        watchdog) echo softlockup ;;
        workqueues) echo wq-named,wq-unbound ;;
        interrupts) echo irq-aff,irq-default ;;
        rcu) echo rcu-normal ;;
        governor) echo governor ;;
        *) return 1 ;;
    esac
}
check_of() {
    case $1 in
        isolation) echo 'culprit(thread)>0.5%' ;;
        vmstat) echo 'culprit(vmstat_update)>0.0005%' ;;
        watchdog) echo 'culprit(watchdog_timer_fn)>0.0001%' ;;
        workqueues) echo 'culprit(wb_workfn)>0.0005%' ;;
        interrupts) echo 'culprit(irq)>0.01%' ;;
        rcu) echo 'culprit(rcu_exp_handler)>0.0001%' ;;
        governor) echo 'culprit(frequency change)>0.0001%' ;;
    esac
}

steps=$(echo "$steps" | tr ',' ' ')
for step in $steps $(echo "$skip" | tr ',' ' '); do
    knobs_of "$step" >/dev/null || fail "there is no step '$step'"
done

is_applied() {
    "$js" tune status --json | grep -q '"active": true'
}
measure() {
    label=$1
    shift
    "$js" record --cpus "$cpus" --duration "$duration" --label "$label" --quiet "$@" >/dev/null
}
# As above, for a step: its culprit is gone.
check() {
    code=0
    measure "$1" --fail-if "$(check_of "$1")" || code=$?
    case $code in
        0) ;;
        3) fail "$1 is applied, and its culprit is still there" ;;
        4) fail "$1 is applied, and whether its culprit is gone is not known" ;;
        *) fail "$1 is applied, and could not be measured" ;;
    esac
}

# What somebody else has applied would be rolled back with the walk.
if is_applied; then
    fail "something is applied already: see $js tune status, and put it back with $js tune rollback"
fi
# What this machine refuses is reported before minutes are spent on measuring.
for step in $steps; do
    case ",$skip," in *",$step,"*) continue ;; esac
    planned=$("$js" tune plan --json --cpus "$cpus" --only "$(knobs_of "$step")") ||
        fail "the steps cannot be planned for CPU $cpus"
    # A knob that is as wanted needs no change.
    case $planned in
        *'"because": "not_here"'* | *'"because": "unreadable"'* | *'"because": "by_hand"'*)
            # That of the knob that cannot be set: what a knob is good for is called so, too.
            why=$(printf '%s\n' "$planned" |
                sed -n '/"because": "\(not_here\|unreadable\|by_hand\)"/,/^ *"why": /{s/^ *"why": "\(.*\)",\{0,1\}$/\1/p;}' |
                head -n 1)
            fail "$step cannot be done on this machine (leave it out with --skip $step): $why"
            ;;
    esac
done
JITTERSCOPE_RUNS=$PWD/walk-$(date +%Y%m%d-%H%M%S)-$$
export JITTERSCOPE_RUNS
mkdir -m 700 "$JITTERSCOPE_RUNS"

back() {
    code=$?
    trap - EXIT
    trap '' HUP INT TERM
    if is_applied; then
        echo "walk: putting everything back" >&2
        "$js" tune rollback --yes >/dev/null || { echo "walk: not all of it could be put back: $js tune status" >&2; code=1; }
    fi
    echo "walk: the runs are in $JITTERSCOPE_RUNS (jitterscope --runs DIR list)" >&2
    exit "$code"
}
trap back EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Whether a run has the culprit of a step: 0 yes, 1 no, and neither where that is not known.
has_culprit_of() {
    code=0
    "$js" report "$1" --json --fail-if "$(check_of "$2")" >/dev/null 2>&1 || code=$?
    case $code in
        0) return 1 ;;
        3) return 0 ;;
        *) fail "whether $1 has the culprit of $2 is not known: $js report $1 --fail-if '$(check_of "$2")'" ;;
    esac
}

echo "walk: BASELINE of CPU $cpus for $duration" >&2
measure BASELINE
last=BASELINE gone='' never=''
for step in $steps; do
    case ",$skip," in *",$step,"*) echo "walk: $step: skipped" >&2; continue ;; esac
    echo "walk: $step: $(knobs_of "$step")" >&2
    # Ends with an error, and so ends the walk, when a change is refused or this machine has no such knob.
    "$js" tune apply --yes --stop --cpus "$cpus" --only "$(knobs_of "$step")" >/dev/null ||
        fail "$step was refused (leave it out with --skip $step)"
    # What was queued before the change still comes.
    sleep 2
    check "$step"
    last=$step
    # Only what was there before has been removed.
    if has_culprit_of BASELINE "$step"; then gone="$gone $step"; else never="$never $step"; fi
done

[ -z "$gone" ] || echo "walk: in BASELINE and gone:$gone" >&2
[ -z "$never" ] || echo "walk: applied, but BASELINE had nothing for them to remove:$never" >&2

echo "walk: what it came to, all steps together" >&2
[ "$last" = BASELINE ] || "$js" diff BASELINE "$last"
