#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   /boot   xfs < SCSI0001-1
#   /var    xfs < LV rhel/var < SCSI0001-2
#   PostgreSQL of the distribution (postgresql.service, /var/lib/pgsql/data) and of the PostgreSQL project's packages
#   (postgresql-VERSION.service, /var/lib/pgsql/VERSION/data); MariaDB of the distribution (/etc/my.cnf, /var/lib/mysql);
#   Firebird of EPEL (firebird.service, /etc/firebird, /var/lib/firebird/data).
#   TuneD is active with the profile that it recommends for a virtual machine.
disk=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0001

remove_debians_layout
account postgres 26 /var/lib/pgsql /bin/bash
account mysql 27 /var/lib/mysql /sbin/nologin

# Programs: those of the distribution in /usr/bin, those of the project in a directory of their version. A server finds its
# libraries beside the directory of its programs, as it was built: Red Hat's own are in /usr/lib64/pgsql.
mv "/usr/lib/postgresql/$version" "/usr/pgsql-$version"
cp --no-dereference --remove-destination "/usr/pgsql-$version"/bin/* /usr/bin/
cp "/usr/pgsql-$version"/lib/*.so /usr/lib/
mkdir -p /usr/libexec

cat > /usr/libexec/postgresql-check-db-dir <<'END'
#!/bin/sh
# Rebuilt: refuses a data directory that initdb has not made.
test -s "$PGDATA/PG_VERSION"
END
chmod 755 /usr/libexec/postgresql-check-db-dir
cp /usr/libexec/postgresql-check-db-dir "/usr/pgsql-$version/bin/postgresql-$version-check-db-dir"

postgresql_unit() { # postgresql_unit NAME DESCRIPTION DATA CHECK PROGRAM
    cat > "$units/$1" <<END
[Unit]
Description=$2
After=network.target

[Service]
Type=notify
User=postgres
Group=postgres
Environment=PGDATA=$3
OOMScoreAdjust=-1000
Environment=PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj
Environment=PG_OOM_ADJUST_VALUE=0
ExecStartPre=$4
ExecStart=$5 -D \${PGDATA}
ExecReload=/bin/kill -HUP \$MAINPID
KillMode=mixed
KillSignal=SIGINT
TimeoutSec=0

[Install]
WantedBy=multi-user.target
END
}
postgresql_unit postgresql.service 'PostgreSQL database server' /var/lib/pgsql/data \
    '/usr/libexec/postgresql-check-db-dir %N' /usr/bin/postmaster
postgresql_unit "postgresql-$version.service" "PostgreSQL $version database server" "/var/lib/pgsql/$version/data/" \
    "/usr/pgsql-$version/bin/postgresql-$version-check-db-dir \${PGDATA}" "/usr/pgsql-$version/bin/postmaster"
echo 'd /run/postgresql 0755 postgres postgres -' > /usr/lib/tmpfiles.d/postgresql.conf
install -d -o postgres -g postgres -m 700 /var/lib/pgsql "/var/lib/pgsql/$version"
cluster /usr/bin /var/lib/pgsql/data 5432
cluster "/usr/pgsql-$version/bin" "/var/lib/pgsql/$version/data" 5433

cat > /etc/my.cnf <<'END'
#
# This group is read both by the client and the server
# use it for options that affect everything
#
[client-server]

#
# include all files from the config directory
#
!includedir /etc/my.cnf.d
END
mkdir /etc/my.cnf.d
cat > /etc/my.cnf.d/mariadb-server.cnf <<'END'
[server]

[mysqld]
datadir=/var/lib/mysql
socket=/var/lib/mysql/mysql.sock
log-error=/var/log/mariadb/mariadb.log
pid-file=/run/mariadb/mariadb.pid

[galera]

[embedded]

[mariadb]
innodb_buffer_pool_size=16M
END
install -d -o mysql -g mysql -m 755 /var/lib/mysql
install -d -o mysql -g mysql -m 750 /var/log/mariadb
mariadb-install-db --user=mysql --datadir=/var/lib/mysql --skip-test-db > /dev/null
mv /usr/sbin/mariadbd /usr/libexec/mariadbd
rm -f /usr/sbin/mysqld
for name in mariadb-check-socket mariadb-prepare-db-dir mariadb-check-upgrade; do
    printf '#!/bin/sh\n# Rebuilt: the data directory is there, and of this version.\nexit 0\n' > "/usr/libexec/$name"
    chmod 755 "/usr/libexec/$name"
done
cat > "$units/mariadb.service" <<'END'
[Unit]
Description=MariaDB database server
After=network.target

[Install]
WantedBy=multi-user.target
Alias=mysql.service
Alias=mysqld.service

[Service]
Type=notify
User=mysql
Group=mysql
ExecStartPre=/usr/libexec/mariadb-check-socket
ExecStartPre=/usr/libexec/mariadb-prepare-db-dir %n
ExecStart=/usr/libexec/mariadbd --basedir=/usr $MYSQLD_OPTS $_WSREP_NEW_CLUSTER
ExecStartPost=/usr/libexec/mariadb-check-upgrade
KillSignal=SIGTERM
SendSIGKILL=no
Restart=on-abort
RestartSec=5s
UMask=007
PrivateTmp=true
TimeoutStartSec=900
TimeoutStopSec=900
END
echo 'd /run/mariadb 0755 mysql mysql -' > /usr/lib/tmpfiles.d/mariadb.conf

install -d -o firebird -g firebird -m 700 /var/lib/firebird/secdb /var/lib/firebird/data
firebird /var/lib/firebird/data/alias.fdb
cat > "$units/firebird.service" <<'END'
[Unit]
Description=Firebird Database Server ( SuperServer )
After=syslog.target network.target

[Service]
User=firebird
Group=firebird
Type=forking
PIDFile=/run/firebird/default.pid
ExecStart=/usr/sbin/fbguard -pidfile /run/firebird/default.pid -daemon -forever

[Install]
WantedBy=multi-user.target
END

systemctl daemon-reload
systemctl --quiet enable postgresql.service "postgresql-$version.service" mariadb.service firebird.service tuned.service
echo virtual-guest > /etc/tuned/active_profile
echo auto > /etc/tuned/profile_mode

printf 'label: gpt\n,320M\n,\n' | sfdisk --quiet --wipe always "$disk"
udevadm settle
mkfs.xfs -q "$disk-part1"
vgcreate -qq rhel "$disk-part2"
lvcreate -qq --yes --size 64M --name swap rhel
lvcreate -qq --yes --extents 100%FREE --name var rhel
mkswap /dev/mapper/rhel-swap > /dev/null
mkfs.xfs -q /dev/mapper/rhel-var
copy /var /dev/mapper/rhel-var
sed -i '1,/^# <file system>/d' /etc/fstab
cat > /etc/fstab.new <<END

#
# /etc/fstab
# Created by anaconda on Mon Nov 24 09:12:31 2025
#
# Accessible filesystems, by reference, are maintained under '/dev/disk/'.
# See man pages fstab(5), findfs(8), mount(8) and/or blkid(8) for more info.
#
# After editing this file, run 'systemctl daemon-reload' to update systemd
# units generated from this file.
#
$(cat /etc/fstab)
UUID=$(blkid -p -s UUID -o value "$disk-part1") /boot                   xfs     defaults        0 0
/dev/mapper/rhel-var    /var                    xfs     defaults        0 0
/dev/mapper/rhel-swap   none                    swap    defaults        0 0
END
mv /etc/fstab.new /etc/fstab
systemctl daemon-reload
sync
