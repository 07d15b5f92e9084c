#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# trace.sh DISK [SECONDS]: print the flushes and FUA writes of one disk by ftrace, then by blktrace. Run it as root on a
# test server while commits.sql runs. It removes its trace at the end.
#   WFS  a write with FUA     WS  a synchronous write     FF, FWS with 0 sectors  a flush
set -eu
disk=$1 seconds=${2:-10}
test -b "/dev/$disk" || { echo "observed $disk, expected a disk of /sys/block, for example sdb" >&2; exit 2; }
tracefs=/sys/kernel/tracing
test -d $tracefs/instances || tracefs=/sys/kernel/debug/tracing
trace=$tracefs/instances/commits-$$
mkdir "$trace"
stop() {
    echo 0 >"$trace/tracing_on"
    rmdir "$trace"
}
trap stop EXIT
trap 'exit 130' INT TERM
device=$(cat "/sys/block/$disk/dev")
# The kernel's number of a device: the major number in the upper 12 of 32 bits.
number=$((${device%:*} << 20 | ${device#*:}))
echo "dev == $number && rwbs ~ \"*F*\"" >"$trace/events/block/block_rq_issue/filter"
echo 1 >"$trace/events/block/block_rq_issue/enable"
timeout "$seconds" cat "$trace/trace_pipe" || test $? -eq 124
blktrace -w "$seconds" -d "/dev/$disk" -a sync -a flush -a fua -o - |
    blkparse -q -i - -f '%T.%9t %D %a %d %S %n %C\n'
