# The agent's life under systemd. Debian has awk, find and xargs; it has no curl, but bash opens connections.
agent=jitterscope-agent.service
tracing() { ls /sys/kernel/tracing/instances; }
# The settings of tracing: those that a recording changes and restores. Linux 6.1 no longer shows the size that the
# top-level buffer will have at its first use, once any instance has been resized: only the size in force is compared.
traced() {
    grep -sH '' /sys/kernel/tracing/tracing_on /sys/kernel/tracing/trace_clock /sys/kernel/tracing/buffer_size_kb |
        sed 's/ (expanded: [0-9]*)$//'
}
running() { cat /proc/[0-9]*/comm 2>/dev/null | grep -x jitterscope; }
shows() { systemctl show $agent; }
metrics() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/9750 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3'; }
# Waits until a property of the unit has a value. Each look takes a second or two in a guest.
becomes() {
    for _ in $(seq 240); do
        [ "$(systemctl show --property "$1" --value $agent)" = "$2" ] && return 0
        sleep 0.5
    done
    return 1
}

step process-1 cat /proc/1/comm
step system systemctl is-system-running
step install dpkg --install /out/jitterscope.deb
systemctl daemon-reload
step enabled systemctl is-enabled $agent
step inactive systemctl is-active $agent
step verify systemd-analyze verify --man=no $agent
step security systemd-analyze security --no-pager $agent
traced >/out/settings-1

# Nothing runs in the guest, so no thread could be found to own a CPU.
settings=/etc/jitterscope/agent.toml
sed -i 's/^# probe = .*/probe = "spin"/' $settings
step start systemctl start $agent
step started shows
step instances tracing
step metrics metrics

sed -i 's/^daily = .*/daily = 7/' $settings
step reload systemctl reload $agent
sleep 3
step reloaded shows
cp $settings /root/right
echo 'kepp = "5m"' >>$settings
step reload-wrong systemctl reload $agent
sleep 3
step refused shows
cp /root/right $settings

# Longer than the watchdog waits.
sleep 75
step fed shows
step log-1 journalctl --no-pager --unit $agent
systemctl kill --signal STOP $agent
# It is started again too soon for a look at the state in between.
becomes NRestarts 1
becomes ActiveState active
step again shows
step starved journalctl --no-pager --unit $agent

step stop systemctl stop $agent
step stopped systemctl is-active $agent
step result shows
step instances-after tracing
step processes-after running
step saved find /var/lib/jitterscope -maxdepth 3 -printf '%m %u %p\n'
traced >/out/settings-2

step enable systemctl enable --now $agent
step purge dpkg --purge jitterscope
step links-after find /etc/systemd/system /run/systemd/system -name '*jitterscope*.service'
step settings-after find /etc/jitterscope -type f
step gone sh -c 'ls /usr/bin/jitterscope'
step processes-purged running
