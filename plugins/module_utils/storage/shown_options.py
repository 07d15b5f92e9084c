# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount options that may be shown in facts, messages, reports and captures: others can hold passwords. Pure.

Only what is known to be harmless is shown: mount.cifs(8), mount.davfs(8), sshfs(1), mount.ceph(8) and their like have
passwords, and paths of files with them, under many names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import known_options

#: Mount options without a value that fstab may hold.
FLAGS = frozenset(
    "defaults rw ro auto noauto user nouser users owner group suid nosuid dev nodev exec noexec sync async dirsync"
    " atime noatime relatime norelatime strictatime nostrictatime diratime nodiratime lazytime nolazytime silent"
    " loud iversion noiversion mand nomand remount bind rbind nofail _netdev _rnetdev barrier nobarrier delalloc"
    " nodelalloc discard nodiscard acl noacl user_xattr nouser_xattr journal_checksum nojournal_checksum"
    " journal_async_commit noload norecovery dioread_nolock dioread_lock auto_da_alloc noauto_da_alloc usrquota"
    " grpquota prjquota quota noquota uquota gquota pquota usrjquota grpjquota minixdf bsddf inode32 inode64"
    " largeio nolargeio wsync attr2 noattr2 ikeep noikeep nouuid filestreams swalloc dax nodatacow datacow"
    " nodatasum datasum autodefrag noautodefrag degraded flushoncommit noflushoncommit notreelog treelog ssd nossd"
    " ssd_spread compress compress-force space_cache nospace_cache clear_cache enospc_debug skip_balance"
    " user_subvol_rm_allowed hard soft intr nointr tcp udp bg fg lock nolock cto nocto ac noac sharecache"
    " nosharecache rdirplus nordirplus posix noposix seal nounix guest sw swap volatile x-systemd.automount"
    " softerr softreval nosoftreval x-initrd.mount x-systemd.growfs x-systemd.makefs x-systemd.rw-only".split()
)
#: Mount options whose value is a number or a word of the file system's own.
KEYS = frozenset(
    "access actimeo acdirmax acdirmin acregmax acregmin allocsize atgc barrier cache commit compress"
    " compress-force data data_err discard dax errors fatal_errors fsync_mode gid huge i_version"
    " init_itable inode_readahead_blks journal_ioprio jqfmt logbsize logbufs max_batch_time max_inline max_read"
    " metacopy min_batch_time mode nfsvers nr_inodes nconnect norecovery port pri proto redirect_dir resuid resgid"
    " retrans retry rsize wsize sb sec size space_cache stripe sunit swidth thread_pool timeo trans uid umask"
    " version vers xino dmask fmask index local_lock lookupcache metadata_ratio minorversion mountvers"
    " debug_want_extra_isize rescue background_gc active_logs alloc_mode subvolid ptmxmode fd pgrp minproto maxproto"
    " pipe_ino timeout nr_blocks pagesize file_mode dir_mode blksize user_id group_id"
    " x-systemd.device-timeout x-systemd.mount-timeout x-systemd.idle-timeout allow_utime blocksize"
    " check_int_print_mask codepage fat journal_dev nfs shortname time_offset tz".split()
)
#: Mount options whose value is a path, or several.
PATHS = frozenset(
    "journal_path logdev lowerdir rtdev subvol upperdir usrjquota workdir x-systemd.requires"
    " x-systemd.requires-mounts-for x-systemd.after x-systemd.before device".split()
)
#: Mount options whose value is somebody's own.
PRIVATE = frozenset(
    "addr backupuid backupgid clientaddr context cred credentials cruid defcontext domain fscontext ip iocharset"
    " mon_addr mountaddr name netbiosname pass pass2 passwd password password2 prefixpath rootcontext secret secretfile"
    " servern"
    " source user username workgroup".split()
)
HIDDEN = "hidden"
#: The names of all options that file systems know.
OPTIONS = frozenset(name for known in known_options.KNOWN.values() for name in known)
PLAIN = re.compile(r"[\w.+:-]{1,40}")
#: What the name of an option that nobody knows has where it holds a password.
_SECRET = re.compile("pass|pwd|secret|cred|key|token|user|login", re.I)
#: Before the login of a URL, or of a share. Another text before `//` may be a part of a login.
_URL = re.compile(
    r"(?:(?:https?|davs?|webdavs?|ftps?|sftp|ssh|sshfs|smb|cifs|nfs|afp|s3|iscsi|nbd):)?//", re.I
)
#: What stands between a user and a password.
_PASSWORD = re.compile("[:%]")


def is_flag(word: str) -> bool:
    """Return whether an option without a value is one that is known."""
    return word in FLAGS or word in OPTIONS


def shown(options: Iterable[str]) -> list[str]:
    """Return options for people: of those that may hold a password, the name alone.

    A password may hold a comma: what follows one, and is no option that is known, is hidden as well.
    """
    found: list[str] = []
    secret = False
    for word in options:
        key, equals, value = word.partition("=")
        if secret and key not in KEYS and not is_flag(key):
            found.append(HIDDEN)
        elif equals and not _is_harmless(key, value):
            secret = key in PRIVATE or bool(_SECRET.search(key))
            found.append(f"{key}={HIDDEN}")
        else:
            secret = False
            found.append(word)
    return found


def as_written(options: Iterable[str]) -> str:
    """Return them as people write them, with a comma between."""
    return ",".join(shown(options))


def without_login(source: str) -> str:
    """Return what is mounted, without the login that may be in it."""
    before, login, place = split_login(source)
    return f"{before}{HIDDEN}@{place}" if login else source


def split_login(source: str) -> tuple[str, str, str]:
    """Return what is before the login in what is mounted, the login, and what is after its `@`. No login is ''.

    A password may hold any character, so a login ends at the last `@`. A part of a path with one counts as login too. A
    user without a password, as in `user@host:/path`, is no login.
    """
    login, _at, place = source.rpartition("@")
    url = _URL.match(login)
    if url and url.end() < len(login):
        return url[0], login[url.end() :], place
    if login and not source.startswith("/") and _PASSWORD.search(login):
        return "", login, place
    return "", "", source


def _is_harmless(key: str, value: str) -> bool:
    if key in PRIVATE:
        return False
    # One that nobody knows may be a slip of its writer: a small number is no password.
    number = re.fullmatch("[0-9]{1,3}", value) and not _SECRET.search(key)
    return key in PATHS or key in OPTIONS or bool(number or (key in KEYS and PLAIN.fullmatch(value)))
