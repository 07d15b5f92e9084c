# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount options that file systems know: with any other, a line of fstab mounts nothing. Pure.

From the parameter tables of Linux 5.10 to 6.12 (fs/ext4/super.c, fs/xfs/xfs_super.c, fs/btrfs/super.c,
fs/fat/inode.c, mm/shmem.c) and from mount(8). Options with a range of their own are in `_SINCE` and `_UNTIL`. The table is
for kernels that cannot be queried (refused_options.py): for a kernel outside its range it decides nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ..host.kernel_version import version
from ..host.mount_api.options import FOR_PROGRAMS, split

#: Forms of an option: `word`, `word=N` (a number), `word=S` (a text), `word=a|b` (one of these).
_GENERIC = (
    "defaults auto noauto user user=S nouser users nousers owner noowner group nogroup rw ro suid nosuid dev nodev"
    " exec noexec sync async dirsync atime noatime relatime norelatime strictatime nostrictatime diratime"
    " nodiratime lazytime nolazytime silent loud iversion noiversion mand nomand symfollow nosymfollow remount bind"
    " rbind move private rprivate shared rshared slave rslave unbindable runbindable nofail _netdev loop loop=S"
    " offset=S sizelimit=S encryption=S helper=S uhelper=S comment=S context=S fscontext=S defcontext=S"
    " rootcontext=S seclabel"
)
_EXT2 = (
    "bsddf minixdf grpid nogrpid bsdgroups sysvgroups resgid=N resuid=N sb=N errors=continue|remount-ro|panic"
    " nouid32 debug oldalloc orlov user_xattr nouser_xattr acl noacl bh nobh min_batch_time=N max_batch_time=N abort"
    " usrjquota=S grpjquota=S jqfmt=vfsold|vfsv0|vfsv1 grpquota quota noquota usrquota prjquota barrier barrier=N"
    " nobarrier i_version stripe=N warn_on_error nowarn_on_error debug_want_extra_isize=N mblk_io_submit"
    " nomblk_io_submit block_validity noblock_validity inode_readahead_blks=N auto_da_alloc auto_da_alloc=N"
    " noauto_da_alloc discard nodiscard init_itable init_itable=N noinit_itable max_dir_size_kb=N"
    " test_dummy_encryption test_dummy_encryption=S inlinecrypt nombcache no_mbcache prefetch_block_bitmaps"
    " no_prefetch_block_bitmaps mb_optimize_scan=N check=S nocheck reservation noreservation journal=S"
)
_EXT3 = (
    f"{_EXT2} commit=N noload norecovery data=journal|ordered|writeback data_err=abort|ignore journal_dev=N"
    " journal_path=S journal_ioprio=N"
)
_EXT4 = (
    f"{_EXT3} journal_checksum nojournal_checksum journal_async_commit delalloc nodelalloc dioread_nolock"
    " nodioread_nolock dioread_lock dax dax=always|inode|never"
)
_XFS = (
    "logbufs=N logbsize=S logdev=S rtdev=S wsync noalign swalloc sunit=N swidth=N nouuid grpid nogrpid bsdgroups"
    " sysvgroups allocsize=S norecovery inode64 inode32 ikeep noikeep largeio nolargeio attr2 noattr2 filestreams"
    " quota noquota usrquota grpquota prjquota uquota gquota pquota uqnoenforce gqnoenforce pqnoenforce qnoenforce"
    " discard nodiscard dax dax=always|inode|never max_atomic_write=S barrier nobarrier"
)
_BTRFS = (
    "acl noacl clear_cache commit=N compress compress=S compress-force compress-force=S datacow nodatacow datasum"
    " nodatasum autodefrag noautodefrag barrier nobarrier degraded device=S discard discard=sync|async nodiscard"
    " enospc_debug noenospc_debug fatal_errors=bug|panic flushoncommit noflushoncommit inode_cache noinode_cache"
    " max_inline=S metadata_ratio=N norecovery rescan_uuid_tree rescue=S skip_balance space_cache space_cache=v1|v2"
    " nospace_cache ssd ssd_spread nossd nossd_spread subvol=S subvolid=S subvolrootid=S thread_pool=N treelog"
    " notreelog nologreplay usebackuproot recovery user_subvol_rm_allowed alloc_start=S check_int check_int_data"
    " check_int_print_mask=N"
)
_VFAT = (
    "uid=S gid=S umask=N dmask=N fmask=N allow_utime=N codepage=N iocharset=S usefree nocase quiet showexec debug"
    " immutable sys_immutable flush tz=UTC time_offset=S errors=continue|panic|remount-ro discard nfs"
    " nfs=stale_rw|nostale_ro dos1xfloppy shortname=lower|win95|winnt|mixed utf8 utf8=S uni_xlate uni_xlate=S"
    " nonumtail nonumtail=S rodir check=S conv=S fat=N blocksize=N dots nodots dotsOK=S posix"
)
_TMPFS = (
    "size=S nr_blocks=S nr_inodes=S mode=N uid=S gid=S huge=never|always|within_size|advise mpol=S inode32 inode64"
    " noswap quota usrquota grpquota usrquota_block_hardlimit=S usrquota_inode_hardlimit=S"
    " grpquota_block_hardlimit=S grpquota_inode_hardlimit=S acl noacl user_xattr nouser_xattr"
)
#: The kernels for which the tables are valid, first and last.
RANGE = ((5, 10), (6, 12))
_Version = tuple[int, int]
#: The first kernel that knows an option, and the first one that knows it no more (FACTS 73, 74; XFS barriers: FACTS 12).
_SINCE: dict[str, dict[str, _Version]] = {"xfs": {"max_atomic_write": (6, 16)}}
_UNTIL: dict[str, dict[str, _Version]] = {
    **{name: {"noacl": (6, 1), "nouser_xattr": (6, 1)} for name in ("ext2", "ext3", "ext4")},
    "xfs": {"barrier": (4, 19), "nobarrier": (4, 19)},
}
#: The kernel reads numbers in base 8, 10 or 16.
NUMBER = r"(?:0[xX][0-9a-fA-F]{1,8}|0[0-7]{0,11}|[1-9][0-9]{0,9})"
#: From this kernel on the ext4 driver takes a plus sign before a number: fs_param_is_u32 in place of match_int.
_SIGNS, _SIGNED = (5, 17), ("ext2", "ext3", "ext4")

#: How alike two spellings are, from 0 to 1, where one is taken for a slip of the other.
_ALIKE, _MUCH_ALIKE = 0.8, 0.85
#: Words of so many letters are like too many others.
_SHORT = 4


def _forms(text: str) -> dict[str, re.Pattern[str]]:
    """Return {option: what may follow its name}."""
    found: dict[str, list[str]] = {}
    for form in text.split():
        name, equals, value = form.partition("=")
        one_of = "|".join(map(re.escape, value.split("|")))
        pattern = {"N": f"={NUMBER}", "S": "=.*"}.get(value, f"=(?:{one_of})") if equals else ""
        found.setdefault(name, []).append(pattern)
    return {name: re.compile("|".join(patterns)) for name, patterns in found.items()}


def _spellings(text: str) -> list[str]:
    """Return the options as they are written, without the values that are free."""
    found = []
    for form in text.split():
        name, equals, value = form.partition("=")
        words = [] if value in ("N", "S") else value.split("|")
        found += [f"{name}={word}" for word in words] if equals and words else [name]
    return found


_TABLES = {
    "ext2": _EXT2,
    "ext3": _EXT3,
    "ext4": _EXT4,
    "xfs": _XFS,
    "btrfs": _BTRFS,
    "vfat": _VFAT,
    "tmpfs": _TMPFS,
}
#: The options that each file system knows. Of others nothing is said.
KNOWN = {name: _forms(f"{_GENERIC} {text}") for name, text in _TABLES.items()}
_OF_ALL = _forms(_GENERIC)


def unknown_to(fstype: str, options: Iterable[str], release: str) -> list[str]:
    """Return the options that a file system does not know by the tables, or whose value it does not know.

    `fstype` as fstab has it: one of several, or `auto`, knows what any of them knows. `release` is the kernel's,
    as uname(2) has it. Empty for a file system without a table here.
    """
    types = list(KNOWN) if fstype == "auto" else fstype.split(",")
    if not set(types) <= set(KNOWN):
        return []
    found = split(",".join(options))
    return [option for option in found if not any(_knows(name, option, release) for name in types)]


def refused_by(fstype: str, options: Iterable[str], release: str) -> list[str]:
    """Return those of `unknown_to` that a kernel refuses for certain: it is in the tables' range, or lost the option."""
    found = unknown_to(fstype, options, release)
    types = list(KNOWN) if fstype == "auto" else fstype.split(",")
    return [option for option in found if all(is_certain(name, option, release) for name in types)]


def is_certain(fstype: str, option: str, release: str) -> bool:
    """Return whether the tables decide whether a kernel knows an option for a type of file system."""
    first, last = RANGE
    name = option.partition("=")[0]
    known_until = _UNTIL.get(fstype, {}).get(name)
    is_lost = known_until is not None and version(release) >= known_until
    return is_lost or first <= version(release) <= last or is_general(option)


def is_general(option: str) -> bool:
    """Return whether mount(8), systemd or the kernel take an option for every type of file system."""
    name, _equals, _value = option.partition("=")
    form = _OF_ALL.get(name)
    return option.startswith(FOR_PROGRAMS) or bool(form and form.fullmatch(option[len(name) :]))


def nearest(fstype: str, option: str) -> str | None:
    """Return the option that was probably meant by one that a file system does not know, None if none is like it."""
    types = _TABLES if fstype == "auto" else fstype.split(",")
    ranges = [range_of[each] for each in types for range_of in (_SINCE, _UNTIL) if each in range_of]
    if any(option.partition("=")[0] in each for each in ranges):
        return None  # It is spelled correctly, for another kernel.
    spelled = _spellings(" ".join((_GENERIC, *(_TABLES.get(name, "") for name in types))))
    name, equals, value = option.partition("=")
    # With its value first: that may be what is misspelt.
    whole = difflib.get_close_matches(option, spelled, 1, _ALIKE)
    if whole and (not equals or "=" in whole[0]):
        return whole[0]
    names = difflib.get_close_matches(name, [word for word in spelled if "=" not in word], 1, _ALIKE)
    return f"{names[0]}{equals}{value}" if names and names[0] != name else None


def slips(options: Iterable[str], others: frozenset[str]) -> list[str]:
    """Return the options that look like slips of those that mount(8) and systemd know for every file system.

    For file systems without a table here, which may know them; `others` are such that are known to be theirs.
    """
    names = (option.partition("=")[0] for option in options)
    known = others.union(*KNOWN.values())
    generic = [name for name in _OF_ALL if len(name) > _SHORT]
    return [
        name
        for name in names
        if len(name) > _SHORT
        and name not in known
        and not name.startswith(FOR_PROGRAMS)
        and difflib.get_close_matches(name, generic, 1, _MUCH_ALIKE)
    ]


def _knows(fstype: str, option: str, release: str) -> bool:
    if is_general(option):
        return True
    name, _equals, _value = option.partition("=")
    now = version(release)
    since, until = (range_of.get(fstype, {}).get(name) for range_of in (_SINCE, _UNTIL))
    if (since and now < since) or (until and now >= until):
        return False
    form = KNOWN[fstype].get(name)
    if now >= _SIGNS and fstype in _SIGNED:
        option = re.sub(r"=\+(?=[0-9])", "=", option)
    return bool(form and form.fullmatch(option[len(name) :]))
