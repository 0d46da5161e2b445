#!/bin/busybox sh
# Process 1 of a guest: makes a small system, runs the command that lies on the shared folder, says how it
# ended, and powers off.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root JITTERSCOPE_RUNS=/tmp/runs LD_LIBRARY_PATH=/lib
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
for module in virtio_pci 9pnet_virtio 9p virtio_net; do modprobe $module; done
[ ! -e /sys/bus/virtio/drivers/virtio_blk ] && modprobe virtio_blk 2>/dev/null
# What the kernel asks for by itself, such as a checksum that a file system needs.
echo /bin/modprobe >/proc/sys/kernel/modprobe
if [ -e /dev/vda ]; then modprobe crc32c_generic; modprobe ext4; fi
ip link set lo up
hostname lab
echo root:x:0:0:root:/root:/bin/sh >/etc/passwd
echo root:x:0: >/etc/group
share() { mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072 "$1" "$2"; }
if ! share lab /lab || ! share out /out; then
    echo "lab: the shared folders cannot be mounted"
    poweroff -f
fi
# A disk with systemd becomes the root, and a unit there runs the command (lab/services.rs).
if grep -q lab.systemd /proc/cmdline; then
    mount -t ext4 /dev/vda /mnt && mount -o move /out /mnt/out && mount -o move /lab /mnt/lab || poweroff -f
    echo >/mnt/lab/booted
    exec env -i switch_root /mnt /lib/systemd/systemd
fi
# From here on what happens is the command's.
echo >/lab/booted
cd /root
sh /lab/command >/lab/stdout 2>/lab/stderr </dev/null
echo $? >/lab/exit
sync
poweroff -f
