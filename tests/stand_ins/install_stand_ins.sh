#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs the stand-ins that are named: mssql, faircom. As root, on a machine that has neither server.
# DESTDIR is put before every path; then no user is made and no unit is made known.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${DESTDIR:-}
python=$(readlink -f /usr/bin/python3)

refuse() { # refuse PATH: a real server's programs are not ours to replace
    if [ -e "$root$1" ] && [ ! -e "$root$2" ]; then
        echo "$root$1 is there, and no stand-in: nothing is installed over a real server" >&2
        exit 1
    fi
}

account() { # account NAME HOME
    [ -n "$root" ] || id "$1" >/dev/null 2>&1 ||
        useradd --system --user-group --home-dir "$2" --no-create-home --shell /usr/sbin/nologin "$1"
}

own() { # own NAME PATH...
    name=$1
    shift
    [ -n "$root" ] || chown -R "$name:$name" "$@"
}

# A server is known by the file that runs: a copy of the interpreter bears its name.
mssql() {
    refuse /opt/mssql/bin/sqlservr /opt/mssql/lib/stand-in
    account mssql /var/opt/mssql
    install -d "$root/opt/mssql/bin" "$root/opt/mssql/lib/stand-in" "$root/var/opt/mssql/data" "$root/var/opt/mssql/log"
    install -m 0755 "$python" "$root/opt/mssql/bin/sqlservr"
    { echo '#!/usr/bin/python3' && cat "$here/mssql_conf_stand_in.py"; } >"$root/opt/mssql/bin/mssql-conf"
    chmod 0755 "$root/opt/mssql/bin/mssql-conf"
    install -m 0644 "$here/sqlservr_stand_in.py" "$root/opt/mssql/lib/stand-in/sqlservr_stand_in.py"
    install -D -m 0644 "$here/mssql-server-stand-in.service" "$root/etc/systemd/system/mssql-server.service"
    own mssql "$root/var/opt/mssql"
    # As the vendor's permissions guide lists them: mssql-conf ran under sudo, and made the file as root.
    chmod 0770 "$root/var/opt/mssql"
    [ -e "$root/var/opt/mssql/mssql.conf" ] || printf '[EULA]\naccepteula = Y\n\n' >"$root/var/opt/mssql/mssql.conf"
    [ -n "$root" ] || chown root:root "$root/var/opt/mssql/mssql.conf"
    chmod 0644 "$root/var/opt/mssql/mssql.conf"
}

faircom() {
    refuse /opt/faircom/server/faircom /opt/faircom/lib/stand-in
    account faircom /opt/faircom
    install -d "$root/opt/faircom/server" "$root/opt/faircom/lib/stand-in" "$root/opt/faircom/config" "$root/opt/faircom/data"
    install -m 0755 "$python" "$root/opt/faircom/server/faircom"
    install -m 0644 "$here/faircom_stand_in.py" "$root/opt/faircom/lib/stand-in/faircom_stand_in.py"
    [ -e "$root/opt/faircom/config/ctsrvr.cfg" ] ||
        printf '; Configuration of a stand-in for FairCom DB\nSERVER_NAME FAIRCOMS\nLOCAL_DIRECTORY ../data\n' \
            >"$root/opt/faircom/config/ctsrvr.cfg"
    install -D -m 0644 "$here/faircom-stand-in.service" "$root/etc/systemd/system/faircom.service"
    own faircom "$root/opt/faircom/data" "$root/opt/faircom/config"
}

[ $# -gt 0 ] || { echo "usage: $0 mssql|faircom..." >&2; exit 2; }
for name in "$@"; do
    case $name in
    mssql | faircom) "$name" ;;
    *) echo "$name: wanted mssql or faircom" >&2; exit 2 ;;
    esac
done
[ -n "$root" ] || systemctl daemon-reload
