#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect disks, their write caches, and the file systems on them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_facts
short_description: Detect write caches, barriers, and the layers between a mount and its disks
version_added: 1.0.0
description:
  - Asks the kernel, the devices and the boot configuration what stands between a commit and the medium.
  - What cannot be read is the word V(unknown), with its reason under RV(ansible_facts.durable_storage.disks[].evidence);
    it never counts as safe.
  - A device that does not answer costs its time limit of ten seconds, and the others are still read.
  - Changes nothing and writes nothing on the host.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.facts
options:
  databases:
    description:
      - As in C(durable_databases). Where the C(paths) in it really lie, links followed, comes back as
        RV(ansible_facts.durable_storage.resolved). One that is a block device comes back among
        RV(ansible_facts.durable_storage.mounts[]) as well, as file system V(raw).
  paths:
    description: More paths to look up in the same way, as M(durable.dbhost.engine_facts) found them.
    type: list
    elements: str
    default: []
requirements:
  - udevadm for names that stay, systemd-detect-virt; hdparm for SATA disks, sdparm for SCSI and SAS, nvme-cli for NVMe;
    od for ext2, ext3 and ext4; dmsetup for LVM, dm-crypt and multipath, and for these multipathd; drbdsetup for DRBD,
    losetup for loop devices. What is missing makes values unknown.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Ask the disks
  durable.dbhost.storage_facts:

- name: Show which caches are on
  ansible.builtin.debug:
    msg: "{{ ansible_facts.durable_storage.disks | items2dict(key_name='name', value_name='write_cache') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one name.
  returned: always
  type: dict
  contains:
    durable_storage:
      description: Disks and mounted file systems. Texts, never booleans, if a value can be unknown.
      type: dict
      returned: always
      contains:
        boot_id:
          description: The kernel's id of this boot.
          type: str
          returned: always
        time:
          description: When the facts were taken, by the host's clock, in UTC and ISO 8601.
          type: str
          returned: always
          sample: '2026-01-31T12:00:00Z'
        kernel:
          description: The kernel's release.
          type: str
          returned: always
        virtualization:
          description: What systemd-detect-virt says; V(none) on bare metal.
          type: str
          returned: always
        platform:
          description:
            - Whose machine it is, by its firmware (C(/sys/class/dmi/id)), else by systemd-detect-virt.
            - V(aws), V(azure), V(google), V(oracle_cloud), V(alibaba), V(digitalocean), V(hetzner), V(scaleway), V(vultr),
              V(akamai), V(openstack), V(hyperv), V(vmware), V(proxmox), V(ovirt), V(nutanix), V(virtualbox), V(xen), V(qemu),
              V(none) (a separate machine) or V(unknown).
          type: str
          returned: always
        root_image:
          description:
            - What the root is made of. V(ostree) is a deployment of ostree, also in image mode. V(transactional) is a snapshot
              of transactional-update. V(read_only) is any other host with a read-only C(/usr). V(none) is not one of these.
          type: str
          returned: always
        next_root:
          description:
            - Whether the next boot starts the deployment or snapshot that runs, V(same) or V(other). V(unknown) if that cannot
              be read.
          type: str
          returned: always
        fstab_error:
          description: What is wrong with C(/etc/fstab), or null.
          type: str
          returned: always
        boot_faults:
          description: What keeps the next boot from mounting lines of C(/etc/fstab), or from mounting them for writing.
          type: list
          elements: dict
          returned: always
          contains:
            source:
              description: Which line.
              type: str
              returned: always
            target:
              description: The mount point.
              type: str
              returned: always
            fstype:
              description: The file system's type as the line names it.
              type: str
              returned: always
            boot:
              description:
                - How it affects the boot. V(required) where it stops, V(read_only) where it leaves C(/) so, V(undecided) where
                  it does one of both, V(without) where it leaves a mount out that it needs, V(empty) where systemd makes an
                  empty directory for a bind mount that has none, V(hides) where it mounts over what is there now, else
                  V(optional).
              type: str
              returned: always
            cause:
              description: Why, one keyword, as V(unknown_option). The finding in docs/findings.md is C(boot.) and this keyword.
              type: str
              returned: always
            state:
              description: V(refused), or V(unknown) if the host cannot show it.
              type: str
              returned: always
            parameters:
              description: The values that the finding names, each a text or a list of texts, as C(unit) and C(waiting).
              type: dict
              returned: always
            options:
              description: The options of the line that are wrong, without what may be a password.
              type: list
              elements: str
              returned: always
        resolved:
          description: For each database path where it really lies, or null when it is not there or unknown.
          type: dict
          returned: always
        unresolved:
          description: For each database path that could not be read, the reason.
          type: dict
          returned: always
        links:
          description:
            - For each database path with links directly in it that lead to directories, where those really lie. What is there
              counts as below the path.
          type: dict
          returned: always
        leased:
          description:
            - Whether a lease of the guard is on the host, V(yes) or V(no). With one its power facts are needed whatever its
              profile is.
          type: str
          returned: always
        other_mounts:
          description: Mount points of file systems that hold no data or hold it in memory, with their type.
          type: dict
          returned: always
        covered:
          description:
            - For each file system that no path leads to, because another was mounted over its mount point or over a directory
              above it, its mount point and that of the other one.
          type: dict
          returned: always
        tuned:
          description: TuneD, which may set I/O schedulers and readahead itself.
          type: dict
          returned: always
          contains:
            profile:
              description: Its active profile, null where it neither runs nor will at the next boot, or V(unknown).
              type: str
              returned: always
            sets:
              description: What that profile, and those that it includes, set of C(elevator) and C(readahead).
              type: dict
              returned: always
            cause:
              description: Why the profile could not be read, or null.
              type: dict
              returned: always
              contains:
                cause:
                  description: One keyword, as V(members_unread).
                  type: str
                  returned: always
                parameters:
                  description: Its values by name. C(error) is the text of an error as it was read, C(why) a list of causes.
                  type: dict
                  returned: always
        disks:
          description: One entry for each whole disk, and for each NFS export that is mounted.
          type: list
          elements: dict
          returned: always
          contains:
            name:
              description: The kernel's name, which can change at each boot.
              type: str
              returned: always
            id:
              description:
                - The name that stays (C(wwn:), C(nvme:) or C(serial:); C(nfs:) of an NFS export), or null; without one nothing
                  can be persisted. RV(ansible_facts.durable_storage.disks[].evidence) has the reason.
                - For a disk without such a name a substitute (C(ptuuid:), C(member:), C(fsuuid:) or C(path:)). Its evidence
                  then has the way in which it can come to mean another disk.
              type: str
              returned: always
            kind:
              description:
                - V(physical), V(raid_volume), V(san), V(network), V(virtual), V(ephemeral), V(memory) or V(unknown).
                - Only V(physical) is trusted when it speaks of its cache, and it is given on evidence alone.
              type: str
              returned: always
            transport:
              description:
                - V(sata), V(sat), V(scsi), V(sas), V(nvme), V(virtio), V(xen), V(usb), V(firewire), V(mmc), V(nfs) or
                  V(unknown).
                - V(sat) is a SATA disk behind a controller that translates SCSI for it, as SAS controllers do.
              type: str
              returned: always
            control:
              description: The interface by which its cache is read and set; V(sata), V(scsi), V(nvme), V(virtio), or V(none).
              type: str
              returned: always
            switchable:
              description: Whether its cache can be switched from this host. V(yes) or V(no).
              type: str
              returned: always
            place:
              description:
                - Where its cache is switched, as a keyword; empty if unknown. V(host), V(array), V(provider), V(azure),
                  V(vmware), V(qemu), V(hyperv), V(virtualbox), V(xen), V(hypervisor), V(nbd), V(ceph), V(nfs), V(layer),
                  V(bridge), V(controller), V(nowhere), V(arcconf), V(ssacli), V(ssacli_arcconf), V(storcli), V(storcli2),
                  V(sas_ircu), V(host_arcconf), V(host_ssacli), V(host_ssacli_arcconf), V(host_storcli), V(host_storcli2) or
                  V(host_sas_ircu).
              type: str
              returned: always
              sample: array
            multipath:
              description:
                - V(yes) for a path of a multipath device, whose RV(ansible_facts.durable_storage.disks[].id) is that of its
                  other paths too; no rule goes by it. Else V(no).
              type: str
              returned: always
            flush_blocked_by:
              description:
                - The device-mapper devices above it, mounted or not, that drop flushes, or of which that is unknown. Its cache
                  is not turned on below them before the next boot.
              type: list
              elements: str
              returned: always
            model:
              description: The model, or null.
              type: str
              returned: always
            serial:
              description: The serial number, or null.
              type: str
              returned: always
            rotational:
              description: V(yes), V(no) or V(unknown).
              type: str
              returned: always
            flush:
              description: V(owed) if a run ended before it flushed this disk, else V(done).
              type: str
              returned: always
            write_cache:
              description: The write cache, and the kernel cache mode.
              type: dict
              returned: always
              contains:
                device:
                  description: The device's own word. V(enabled), V(disabled), V(none) (it has no volatile cache) or V(unknown).
                  type: str
                  returned: always
                kernel:
                  description:
                    - The kernel cache mode. The kernel flushes at V(write back), not at V(write through); or V(unknown).
                  type: str
                  returned: always
                persisted:
                  description:
                    - What the last component sets at the next boot, our udev rule or another one. V(enabled), V(disabled),
                      V(none), V(unset) if nothing sets it, or V(unknown).
                  type: str
                  returned: always
                volatile:
                  description:
                    - Whether a power cut empties it. V(non_volatile) or V(unknown); of a RAID volume whose controller answered
                      also V(volatile).
                  type: str
                  returned: always
                kernel_persisted:
                  description: The kernel cache mode at the next boot, V(write through) or V(unknown).
                  type: str
                  returned: if another component lowers it, or may lower it
                power_on:
                  description:
                    - In which state it comes out of a reset or a boot, because the disk has saved it, or else by default.
                      V(enabled), V(disabled) or V(unknown).
                  type: str
                  returned: for a SCSI disk below a device-mapper device of C(/) or C(/usr)
            raid:
              description:
                - Of a RAID volume what the tool of its controller says; null for other disks. The tool, or why none could be
                  asked, is in RV(ansible_facts.durable_storage.disks[].evidence).
              type: dict
              returned: always
              contains:
                volume:
                  description: The tool's name of the volume, or null if the disk may be another one.
                  type: str
                  returned: always
                  sample: /c0/v1
                write_policy:
                  description:
                    - V(write_back) while the battery or capacitor is good, V(always_write_back) in any case, V(write_through),
                      or V(unknown).
                  type: str
                  returned: always
                backup:
                  description:
                    - The battery or capacitor behind the controller's cache. V(good), V(charging) (or learning), V(failed),
                      V(missing) or V(unknown).
                  type: str
                  returned: always
                drive_caches:
                  description: The caches of the disks behind the controller. V(enabled), V(disabled) or V(unknown).
                  type: str
                  returned: always
            fua:
              description: Whether the kernel sends the disk FUA writes. V(supported), V(unsupported) or V(unknown).
              type: str
              returned: always
            fua_efficient:
              description: Whether a log write needs no separate flush. V(yes), V(no) or V(unknown).
              type: str
              returned: always
            sector:
              description: The sizes of its sectors in bytes, as text.
              type: dict
              returned: always
              contains:
                logical:
                  description: The smallest write, or V(unknown).
                  type: str
                  returned: always
                physical:
                  description: The largest write that a power cut does not tear, as the disk reports it, or V(unknown).
                  type: str
                  returned: always
            scheduler:
              description: The I/O scheduler.
              type: dict
              returned: always
              contains:
                running:
                  description: The one in force, or V(unknown).
                  type: str
                  returned: always
                available:
                  description: Those that the kernel has loaded.
                  type: list
                  elements: str
                  returned: always
                persisted:
                  description: What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown).
                  type: str
                  returned: always
            readahead:
              description: The readahead in KiB, as text.
              type: dict
              returned: always
              contains:
                running:
                  description: The one in force, or V(unknown).
                  type: str
                  returned: always
                persisted:
                  description: What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown).
                  type: str
                  returned: always
            evidence:
              description:
                - For each value its C(value), C(source) and C(reason). The reason is null or the text of the error with which a
                  value could not be read, as it was read.
                - C(cause) is a keyword for why a value is unknown, or for what made it, and C(parameters) the values of that
                  cause.
                - For a value at the next boot also C(by), the component that sets it last, and C(precedence), V(theirs) if no
                  rule of ours can take precedence over that component.
                - Keys are the fields' names, with a dot where they lie deeper (C(write_cache.device)).
              type: dict
              returned: always
        mounts:
          description:
            - One entry for each superblock that can hold data. Network file systems and overlays count, those in memory do not.
          type: list
          elements: dict
          returned: always
          contains:
            target:
              description: Its first mount point; of file system V(raw) the device.
              type: str
              returned: always
            targets:
              description: Everywhere it is mounted; empty when it is hidden in another namespace.
              type: list
              elements: str
              returned: always
            boots:
              description:
                - For each mount point at which something mounts it at boot, whether the boot needs it. V(required),
                  V(automount), V(optional) or V(unknown).
              type: dict
              returned: always
            hidden_in:
              description: The process that sees it, when it is mounted in another mount namespace only; else null.
              type: str
              returned: always
            views:
              description: Other mount namespaces in which it is mounted with another atime option.
              type: list
              elements: dict
              returned: always
              contains:
                pid:
                  description: One process that sees it so.
                  type: int
                  returned: always
                command:
                  description: That process's name.
                  type: str
                  returned: always
                target:
                  description: Its mount point there.
                  type: str
                  returned: always
                atime:
                  description: The atime option there.
                  type: str
                  returned: always
            source:
              description: The device, as the kernel names it.
              type: str
              returned: always
            device:
              description: The superblock's number, C(major:minor).
              type: str
              returned: always
            carrier:
              description:
                - Kernel name of the whole device right below it, whose readahead counts. Null for file systems without one.
              type: str
              returned: always
            carrier_id:
              description: The carrier's name that stays (a disk's, C(dm:) or C(md:)), or null.
              type: str
              returned: always
            readahead:
              description: The carrier's readahead in KiB, as text; empty without a carrier.
              type: dict
              returned: always
              contains:
                running:
                  description: The one in force, or V(unknown).
                  type: str
                  returned: with a carrier
                persisted:
                  description: What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown).
                  type: str
                  returned: with a carrier
            fstype:
              description: The file system's type; V(raw) for a block device that a database path names.
              type: str
              returned: always
            barrier:
              description: Whether a commit flushes the disks. V(on), V(off) or V(unknown).
              type: str
              returned: always
            data_mode:
              description: V(ordered), V(journal), V(writeback), V(none) (no such mode, or no journal) or V(unknown).
              type: str
              returned: always
            atime:
              description: The running atime option. V(noatime), V(relatime), V(strictatime), V(atime) or V(unknown).
              type: str
              returned: always
            sync:
              description: Whether it is mounted with C(sync). V(yes) or V(no).
              type: str
              returned: always
            options_running:
              description:
                - Options of the mount and of its superblock. Here and below, an option that may hold a password, or a path of
                  one, has the value V(hidden). Empty for one that systemd mounts at the first access, until then.
              type: list
              elements: str
              returned: always
            options_fstab:
              description: Options of its line in C(/etc/fstab), or null.
              type: list
              elements: str
              returned: always
            options_boot:
              description:
                - Options of the next boot, from fstab or the systemd mount unit or drop-in that overrides it, those of
                  C(rootflags=) first. Null when nothing mounts it, or that is unknown.
              type: list
              elements: str
              returned: always
            persisted:
              description:
                - The next mount, from superblock defaults and C(options_boot).
                - V(unset) if nothing mounts it, V(refused) if the kernel would refuse it.
              type: dict
              returned: always
              contains:
                barrier:
                  description: V(on), V(off), V(unset), V(refused) or V(unknown).
                  type: str
                  returned: always
                data_mode:
                  description: V(ordered), V(journal), V(writeback), V(none), V(unset), V(refused) or V(unknown).
                  type: str
                  returned: always
                atime:
                  description: V(noatime), V(relatime), V(strictatime), V(atime), V(unset) or V(unknown).
                  type: str
                  returned: always
                recovery:
                  description: V(hard), V(soft), V(softerr), V(unset) or V(unknown).
                  type: str
                  returned: for NFS
                sync:
                  description: V(sync), V(async) or V(unknown).
                  type: str
                  returned: if another component than the mount may set it
            stack:
              description: The layers below, top first, down to the disks.
              type: list
              elements: dict
              returned: always
              contains:
                name:
                  description: The kernel's name.
                  type: str
                  returned: always
                type:
                  description:
                    - V(partition), V(lvm), V(crypt), V(multipath), V(dm), V(md), V(drbd), V(bcache), V(loop), V(disk), or
                      V(unknown).
                  type: str
                  returned: always
                detail:
                  description:
                    - Its subtype, as V(linear), V(raid1), V(writeback), or the name of a layer that is not understood. Of a
                      loop device the type of the file system that holds its file.
                  type: str
                  returned: always
                state:
                  description:
                    - Of an md array its consistency policy, what it is doing and how many members it lacks. Of a cache its
                      mode, of a writecache its medium (V(ssd) or V(pmem)), of a snapshot whether its exceptions are
                      V(persistent) or V(transient), of integrity V(journal), V(bitmap) or V(no journal).
                    - Of a multipath device what it does without a path, now and by multipathd's C(no_path_retry).
                    - Of a DRBD device its protocol, how it orders writes, flushes that are off, and peers that are up to date.
                  type: str
                  returned: always
                  sample: resync, degraded by 1
                below:
                  description: Kernel names of the devices below it.
                  type: list
                  elements: str
                  returned: always
                label:
                  description: The name that it was given, where it has one.
                  type: str
                  returned: always
                cache_mode:
                  description:
                    - The kernel cache mode of this layer; empty for partitions and disks. A device-mapper device keeps the
                      cache mode with which it was made. V(write back), or V(write through), which drops flushes; or V(unknown).
                  type: str
                  returned: always
                cause:
                  description: Why it is unknown whether it passes flushes, or null if it is known.
                  type: dict
                  returned: always
                  contains:
                    cause:
                      description: One keyword, as V(members_unread).
                      type: str
                      returned: always
                    parameters:
                      description: Its values by name. C(error) is the text of an error as it was read, C(why) a list of causes.
                      type: dict
                      returned: always
                id:
                  description:
                    - Of a device-mapper device the name that stays, C(dm:) and its uuid, or C(dm-name:) and its name; else
                      empty.
                  type: str
                  returned: always
                held_on:
                  description: Of a loop device the device number of the file system that holds its file; else empty.
                  type: str
                  returned: always
            disks:
              description: The kernel names of the disks at the bottom, or V(unknown) when a layer is not understood.
              type: raw
              returned: always
            disks_seen:
              description: The disks that were found, also below a layer that is not understood.
              type: list
              elements: str
              returned: always
            devices_missing:
              description: Why not all devices that it writes to are known.
              type: list
              elements: dict
              returned: always
              contains:
                cause:
                  description: One keyword, as V(members_unread).
                  type: str
                  returned: always
                parameters:
                  description: Its values by name. C(error) is the text of an error as it was read, C(why) a list of causes.
                  type: dict
                  returned: always
            external_log:
              description: Further devices that it writes to (journal, log, real-time), or null.
              type: str
              returned: always
            write_hole:
              description: Layers below it, or parts of it, that are RAID 4, 5 or 6 without a journal.
              type: list
              elements: dict
              returned: always
              contains:
                maker:
                  description: What writes the parity. V(md), V(dm) (device-mapper, as LVM uses it) or V(file_system).
                  type: str
                  returned: always
                name:
                  description:
                    - The kernel's name of the layer, or of a file system the chunks - V(data), V(metadata) or V(system).
                  type: str
                  returned: always
                level:
                  description: The level of the RAID, for example V(raid5).
                  type: str
                  returned: always
            fua_path:
              description:
                - Whether a direct log write (C(O_DIRECT) with C(O_DSYNC), over blocks written before) reaches the medium as one
                  FUA write. V(yes), V(no) or V(unknown).
              type: str
              returned: always
            evidence:
              description:
                - For each value its C(value), C(source) and C(reason). The reason is null or the text of the error with which a
                  value could not be read, as it was read.
                - C(cause) is a keyword for why a value is unknown, or for what made it, and C(parameters) the values of that
                  cause.
                - For a value at the next boot also C(by), the component that sets it last, and C(precedence), V(theirs) if no
                  rule of ours can take precedence over that component.
                - Keys are the fields' names, with a dot where they lie deeper (C(persisted.barrier)).
              type: dict
              returned: always
            recovery:
              description:
                - What an NFS client does when the server does not answer. V(hard), V(soft), V(softerr) or V(unknown). See also
                  C(persisted.recovery), which may be V(unset).
              type: str
              returned: for NFS
            dir_index:
              description: Whether directories have an index. V(yes) or V(no).
              type: str
              returned: for ext2, ext3 and ext4 if the superblock could be read
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.paths import of_databases
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, observed
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable, expect_root
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect


def main() -> None:
    """Run the module."""
    spec = {"databases": {"type": "raw"}, "paths": {"type": "list", "elements": "str", "default": []}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    host = Host()
    try:
        expect_root(host)
        paths = dict.fromkeys((*of_databases(module.params["databases"]), *module.params["paths"]))
        facts = collect(host, now, paths)
    except Unobservable as error:
        fail(module, f"This machine cannot be observed: {error}")
    observed(module, "durable_storage", facts)


if __name__ == "__main__":
    main()
