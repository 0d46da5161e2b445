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
    threads
    ls /sys/kernel/tracing/instances /sys/fs/cgroup 2>/dev/null
}
# Where each thread may run: "thread PID START CPUS NAME", for a pid may be another thread's by and by. The workers of
# workqueues alone are not among them (flag PF_WQ_WORKER): a rescuer moves by itself to whichever CPU has too few of
# them, and where a worker runs is its queue's setting, which stands above. Nor is the process that looks.
threads() {
    awk '
        BEGIN {
            getline own <"/proc/self/stat"
            sub(/ .*/, "", own)
            for (at = 1; at < ARGC; at++) {
                # It may end between any two of these lines.
                if ((getline name <(ARGV[at] "/stat")) <= 0) continue
                close(ARGV[at] "/stat")
                tid = rest = name
                sub(/ .*/, "", tid)
                sub(/^[^(]*[(]/, "", name)
                sub(/[)][^)]*$/, "", name)
                sub(/.*[)] /, "", rest)
                split(rest, stat, " ")
                if (int(stat[7] / 32) % 2 || tid == own) continue
                cpus = ""
                while ((getline line <(ARGV[at] "/status")) > 0)
                    if (sub(/^Cpus_allowed_list:[ \t]*/, "", line)) cpus = line
                close(ARGV[at] "/status")
                if (cpus != "") print "thread", tid, stat[20], cpus, name
            }
        }' /proc/[0-9]*/task/[0-9]*
}
