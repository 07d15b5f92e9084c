#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Parts of the rebuilt layouts of distribution families: Debian's PostgreSQL and MariaDB, stored where the packages of
# another distribution store them. Paths, owners, modes and units are from public documents and outputs. No program of that
# distribution runs: the scripts that its units start are written for this lab and do only what is documented.
set -eu
cd /

version=$(ls /usr/lib/postgresql)
units=/usr/lib/systemd/system

# Stop Debian's servers and remove their units, their data and their configuration.
remove_debians_layout() {
    if pg_lsclusters --no-header | grep -q main; then pg_dropcluster --stop "$version" main; fi
    systemctl --quiet disable --now postgresql.service mariadb.service
    rm -rf /etc/postgresql /etc/mysql /var/lib/postgresql /var/lib/mysql /var/log/postgresql /var/log/mysql \
        /run/postgresql /run/mysqld "$units"/postgresql* "$units"/mariadb* "$units"/mysql* /etc/init.d/postgresql /etc/init.d/mariadb \
        /usr/lib/systemd/system-generators/postgresql-generator /usr/lib/tmpfiles.d/postgresql*.conf \
        /usr/lib/tmpfiles.d/mariadb.conf
}

account() { # account NAME NUMBER HOME SHELL: the number that the distribution reserves; a group of Debian's gives way
    other=$(getent group "$2" | cut -d: -f1)
    if [ -n "$other" ]; then groupmod --gid "9$2" "$other"; fi
    groupmod --gid "$2" "$1"
    usermod --uid "$2" --gid "$2" --home "$3" --shell "$4" "$1"
}

cluster() { # cluster PROGRAMS DATA PORT
    install -d -o postgres -g postgres -m 700 "$2"
    runuser -u postgres -- "$1/initdb" --auth=ident --locale=C.UTF-8 --pgdata="$2" > /dev/null
    printf '%s\n' 'shared_buffers = 16MB' 'max_connections = 20' "port = $3" 'logging_collector = on' >> "$2/postgresql.conf"
}

copy_var() { # copy_var DEVICE [OPTIONS]: the next boot mounts it at /var
    mount ${2:+-o "$2"} "$1" /mnt
    cp -a --one-file-system /var/. /mnt/
    umount /mnt
}
