# Read before every trial's script. `step NAME COMMAND...` keeps a command's output, error and exit code.
step() {
    name=$1
    shift
    "$@" >"/out/$name.out" 2>"/out/$name.err"
    code=$?
    echo "$name $code" >>/out/codes
    return $code
}
# Every setting that can be written, with its value: what a rollback has to restore.
settings() {
    {
        find /proc/sys /proc/irq /sys/devices/system /sys/devices/virtual/workqueue /sys/kernel/mm /sys/bus/workqueue \
            /sys/module /sys/block /sys/class/net/*/queues /sys/fs/cgroup -type f -perm /222 2>/dev/null |
            grep -v -e /rerun_ -e /stat_refresh -e /probe -e /uevent -e drop_caches -e compact_memory -e pressure
    } | sort -u | xargs grep -sH '' /dev/null
    for thread in /proc/[0-9]*/status; do
        # Worker threads come and go; kernel threads have no memory of their own.
        grep -q '^VmSize' "$thread" 2>/dev/null && continue
        # So do the rescuers among them, to whichever CPU has too few workers: the flag PF_WQ_WORKER tells them.
        flags=$(sed 's/.*) //' "${thread%status}stat" 2>/dev/null | cut -d ' ' -f 7)
        [ $((${flags:-0} & 32)) -ne 0 ] && continue
        echo "$(grep -s '^Name' "$thread" | cut -f2): $(grep -s '^Cpus_allowed_list' "$thread" | cut -f2)"
    done | grep -v kworker | sort
    ls /sys/kernel/tracing/instances /sys/fs/cgroup 2>/dev/null
}
