#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Parts of the rebuilt layouts of distribution families: Debian's PostgreSQL, MariaDB and Firebird, stored where the packages
# of another distribution store them. Paths, owners, modes and units are from public documents and outputs. No program of that
# distribution runs: the scripts that its units start are written for this lab and do only what is documented.
set -eu
cd /

version=$(ls /usr/lib/postgresql)
units=/usr/lib/systemd/system

# Stop Debian's servers and remove their units, their data, their configuration and Debian's tools for clusters.
remove_debians_layout() {
    if pg_lsclusters --no-header | grep -q main; then pg_dropcluster --stop "$version" main; fi
    systemctl --quiet disable --now postgresql.service mariadb.service firebird3.0.service
    rm -rf /etc/postgresql /etc/mysql /var/lib/postgresql /var/lib/mysql /var/log/postgresql /var/log/mysql \
        /run/postgresql /run/mysqld "$units"/postgresql* "$units"/mariadb* "$units"/mysql* /etc/init.d/postgresql /etc/init.d/mariadb \
        /usr/lib/systemd/system-generators/postgresql-generator /usr/lib/tmpfiles.d/postgresql*.conf \
        /usr/lib/tmpfiles.d/mariadb.conf /usr/bin/pg_*cluster* "$units"/firebird* /etc/init.d/firebird3.0 /usr/lib/tmpfiles.d/firebird3.0.conf
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

firebird() { # firebird DATABASE: configuration and security database where both distributions have them; libraries stay
    libraries=/usr/lib/x86_64-linux-gnu
    rm /etc/firebird/3.0/SYSDBA.password
    mv /etc/firebird/3.0/fbintl.conf "$libraries/firebird/3.0/intl/"
    mv /etc/firebird/3.0/* /etc/firebird/
    rmdir /etc/firebird/3.0
    for name in databases fbtrace firebird plugins; do
        ln -sf "/etc/firebird/$name.conf" "$libraries/firebird/3.0/$name.conf"
    done
    mv /var/lib/firebird/3.0/system/security3.fdb "/var/lib/firebird/secdb/"
    chmod 600 /var/lib/firebird/secdb/security3.fdb
    rm -r /var/lib/firebird/3.0
    # Programs and libraries have these paths built in: the shorter ones end with zeros.
    grep -rlF /var/lib/firebird/3.0 /usr/bin /usr/sbin "$libraries" | xargs sed -i \
        -e 's#/var/lib/firebird/3.0/system#/var/lib/firebird/secdb\x0\x0\x0\x0\x0#g' \
        -e 's#/run/firebird3.0#/run/firebird\x0\x0\x0#g'
    mv /usr/bin/fbstat /usr/bin/gstat-fb
    echo 'd /run/firebird 0775 firebird firebird -' > /usr/lib/tmpfiles.d/firebird.conf
    install -d -o firebird -g firebird -m 775 /run/firebird
    echo "create database '$1'; create table t (n integer); commit;" \
        | setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp isql-fb -q
    echo "lab = $1" >> /etc/firebird/databases.conf
}

copy() { # copy DIRECTORY DEVICE [OPTIONS]: the next boot mounts it there
    mount ${3:+-o "$3"} "$2" /mnt
    cp -a --one-file-system "$1/." /mnt/
    umount /mnt
}
