# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of other components that act at the next boot, and at the next start of a server."""

from __future__ import annotations

from ansible_collections.durable.dbhost.plugins.module_utils.capture import redact_devices
from ansible_collections.durable.dbhost.plugins.module_utils.capture.identities import Identities
from ansible_collections.durable.dbhost.plugins.module_utils.engines import (
    config_writes,
    others,
    start_commands,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Observed
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import drop_in as mariadb_drop_in
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import observe as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import (
    statements as mariadb_statements,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import (
    versions as mariadb_versions,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import observe as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host import (
    boot_environment,
    observation,
    shell_lines,
    system_conf,
    tmpfiles_d,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import (
    acts,
    command_lines,
    commands,
    generators,
    power_tools,
    tmpfiles,
    udisks,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    boot_blockers,
    boot_loader,
    device_names,
    extra_mounts,
    fstab,
    nfs_conf,
)
from fuzz.target import of_text

_DISK = acts.Device("sda", "8:0", frozenset({"/dev/disk/by-id/ata-x_y"}), serial="y")
_VERSION = "10.11.6-MariaDB"
_CONFIG = config_writes.of_instance("/c/main", ["/c/d/zz.conf"], ["/c/main:3"], ["/d/auto.conf"])


@of_text(
    Unobservable,
    seeds=[
        "# c \\\n[Service]\nType=oneshot\nExecStart=/bin/sh -c \\\n; c\n 'hdparm -W1 /dev/sda'\nExecStart=\n[x\n",
        '[Manager]\nDefaultEnvironment="A=b c" D=e\nDefaultEnvironment=\n',
        "[Unit]\nRequires=a.service b.mount\nConditionPathExists=/x\n[Service]\nEnvironment='a\n",
    ],
)
def file_of_systemd(text: str) -> None:
    rows = [row for row, _line in system_conf.logical_lines(text)]
    assert rows == sorted(rows) and len(rows) <= text.count("\n") + 1
    for line in system_conf.parse(text, "/x"):
        assert int(line.source.removeprefix("/x line ")) in rows
        list(system_conf.assigned(line))


@of_text(
    Unobservable,
    seeds=[
        "#!/bin/sh\n# c\necho A=b\necho \"C=d e\"\nprintf 'F=g\\n'\n",
        "#!/bin/sh\ncat /etc/x\n",
        "\x7fELF",
    ],
)
def generator_of_variables(text: str) -> None:
    assert all(name for name, _value, _source in boot_environment._printed(text, "/x"))


@of_text(
    seeds=[
        "w+ /sys/block/sda/queue/write_cache - - - - write through\nF! '/sys/a b' 0644 \"r o\" - - %%x %m\n",
        "# c\nL+ /c/main - - - - /usr/x\nd /run/x\nR /c/d*\nw /x - - - - -\n",
    ]
)
def tmpfiles_file(text: str) -> None:
    lines = list(tmpfiles_d.parse(text, "/x"))
    assert len(lines) <= text.count("\n") + 1
    assert {act.source for act in tmpfiles.written(lines)} <= {line.source for line in lines}


@of_text(
    seeds=[
        "#!/bin/sh\nif x; then\n hdparm -W1 /dev/sda # c\nfi\necho write through > /sys/block/sda/queue/write_cache\n",
        "mount -o remount,barrier=0 \\\n /srv/x; exit 0\ntee /c/main <<E\nfsync=off\nE\ncp -a /x /c/d/zz.conf\n",
        "mariadb -e 'SET GLOBAL sync_binlog=0; -- c'\npsql -c \"ALTER SYSTEM RESET ALL\"\n",
    ]
)
def script_of_an_administrator(text: str) -> None:
    assert len(list(shell_lines.lines(text))) <= text.count("\n") + 1
    for act in commands.of_script(text, "/x", "a unit"):
        acts.is_about(act.words[0], _DISK)
        acts.is_about_mount(act.words[0], ["/srv/x"], [_DISK])
    seen = Observed(observation.Observation(_VERSION, "a test"), {})
    for line in list(start_commands._of_script(text, "/x", "a unit", "/y line 1"))[:50]:
        assert not start_commands._is_of(line, ("x.service",))
        path = config_writes.written(line, _CONFIG)
        assert path is None or _CONFIG.has(path)
        assert all(_CONFIG.has(copy.path) for copy in config_writes._copies(line.text, _CONFIG))
        names = {change.name for change in (*mariadb.reads(line, seen), *postgresql.reads(line, seen))}
        assert "" not in names


@of_text(
    seeds=[
        "SET GLOBAL innodb_flush_log_at_trx_commit = 0, @@session.sync_binlog=1; /* ; */ # c\nSELECT ';'",
        "ALTER INSTANCE DISABLE INNODB REDO_LOG;\n/*!50000 SET PERSIST `sync_binlog`=(1) */;CALL x('it''s');",
    ]
)
def statements_of_sql(text: str) -> None:
    version = mariadb_versions.release(_VERSION)
    found = mariadb_statements.split(text)
    assert all(1 <= statement.row <= text.count("\n") + 1 for statement in found)
    mariadb_statements.of_file(text, "/x", version)
    mariadb_statements.of_text(others.Text(f"mariadb -e '{text}'", "/x line 1", "a unit", True), version)


@of_text(Malformed, ValueError, seeds=["[mariadb]\nsync_binlog=1\n!include /x\n[client]\nplugin-dir=/x\n"])
def drop_in_with_others_lines(text: str) -> None:
    assert all(mariadb_drop_in.foreign(text))


@of_text(seeds=["[ATA]\nWriteCacheEnabled=true\nWriteCacheEnabled = false\n"])
def drive_of_udisks(text: str) -> None:
    assert len(udisks.parse(text, "/etc/udisks2/ata-x_y.conf", [_DISK])) <= text.count("\n") + 1


@of_text(
    seeds=[
        "DISK_IOSCHED=\"mq-deadline keep\" # c\nDISK_DEVICES='ata-x_y sda'\nCONTROL_HD_WRITECACHE=1\n",
        "CONTROL_HD_WRITECACHE=auto\nNOLM_AC_HD_WRITECACHE=0\n#LM_HD_WRITECACHE=1\n",
    ]
)
def power_tool(text: str) -> None:
    values = power_tools.parse(text, "/x")
    assert all(
        1 <= int(place.removeprefix("/x line ")) <= text.count("\n") + 1 for _value, place in values.values()
    )
    assert all(
        not act.is_certain for act in (*power_tools._of_tlp(values), *power_tools._of_laptop_mode(values))
    )


@of_text(
    seeds=[
        "systemd.mount-extra=/dev/sda1:/srv/x:ext4:noatime",
        'rd.systemd.mount_extra="UUID=a\\:b:/sysroot//srv/./x" systemd.mount-extra=tmpfs:/x:tmpfs:',
    ]
)
def word_of_a_command_line(text: str) -> None:
    for word in (text, *command_lines.split(text)):
        line = extra_mounts.parse(word, "/x")
        if line:
            assert line.spec and line.target.startswith("/") and line.options and line.fstype != "swap"
            assert ":" in word and line.source == "/x"


@of_text(
    seeds=[
        "kernel_cmdline+=\" quiet rootflags=nobarrier,data='x' \"\n# c\nROOTFLAGS='-o nobarrier'\n",
        'export GRUB_CMDLINE_LINUX_DEFAULT="$A rootflags=barrier=0"\nexport ROOTFLAGS=-onobarrier\n',
    ]
)
def options_of_the_next_update(text: str) -> None:
    for _place, _directory, _ending, key in (*boot_loader._INITRAMFS, boot_loader._GRUB):
        rows = boot_loader.parse_stored(text, key)
        assert all(flags and 1 <= row <= text.count("\n") + 1 for row, flags in rows)


@of_text(
    seeds=[
        '# c\nSUBSYSTEM=="block", ENV{ID_FS_UUID}=="x", TAG+="systemd", SYMLINK+="disk/by-uuid/$env{ID_FS_UUID}"\n',
        "#!/bin/sh\nln -s /dev/null /run/systemd/generator/srv-x.mount\necho local-fs.target\n",
    ]
)
def file_that_replaces_another(text: str) -> None:
    line = fstab.parse("UUID=01-ab /srv/x ext4 defaults 0 2\n")[0]
    for name in ("99-systemd.rules", "60-persistent-storage.rules"):
        boot_blockers._makes(generators._without_comments(text), name, line)
    assert set(device_names._plain_uuid(text)) <= set("0123456789abcdef")
    assert redact_devices.generator(text, Identities(text)) is not None


@of_text(
    Unobservable,
    seeds=[
        '[ NFSMount_Global_Options ]\nSoft=True\n[ MountPoint "/srv/x" ]\n# c\nSoft = "true"\n',
        "[Server \u201cfiler\u201d]\nsofterr='true'\ninclude /x\n",
    ],
)
def nfsmount_conf(text: str) -> None:
    ours = {("nfsmount_global_options", ""), ("mountpoint", "/srv/x")}
    for found in nfs_conf._options(text, "/x", ours):
        assert found.value in ("soft", "softerr")
