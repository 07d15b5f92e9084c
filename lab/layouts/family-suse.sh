#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   /opt, /srv, /usr/local, /var   subvolumes of btrfs on VIRT0001-1; /var is not copied on write
#   PostgreSQL: postgresql.service starts postgresql-script, data in /var/lib/pgsql/data.
#   MariaDB: mariadb.service starts mysql-systemd-helper, /etc/my.cnf, /var/lib/mysql.
#   Firebird: a SysV script starts it, /etc/firebird with a directory of files that it includes, data in /srv/firebird.
#   TuneD is installed and inactive.
disk=/dev/disk/by-id/virtio-VIRT0001

remove_debians_layout
systemctl --quiet disable --now tuned.service
account postgres 26 /var/lib/pgsql /bin/bash
account mysql 60 /var/lib/mysql /bin/false

mv "/usr/lib/postgresql/$version" "/usr/lib/postgresql$version"
for program in psql pg_ctl initdb; do
    ln -sf "/usr/lib/postgresql$version/bin/$program" "/etc/alternatives/$program"
    ln -sf "/etc/alternatives/$program" "/usr/bin/$program"
done
cat > /usr/share/postgresql/postgresql-script <<'END'
#!/bin/bash
# Rebuilt: does what postgresql-README.SUSE and /etc/sysconfig/postgresql document, and is not SUSE's own.
test -r /etc/sysconfig/postgresql && . /etc/sysconfig/postgresql
eval DATADIR=${POSTGRES_DATADIR:-~postgres/data}
case $1 in
start) pg_ctl start -s -w -t "${POSTGRES_TIMEOUT:-600}" -D "$DATADIR" -o "$POSTGRES_OPTIONS" ;;
stop) pg_ctl stop -s -D "$DATADIR" -m fast ;;
reload) pg_ctl reload -s -D "$DATADIR" ;;
esac
END
chmod 755 /usr/share/postgresql/postgresql-script
mkdir -p /etc/sysconfig
cat > /etc/sysconfig/postgresql <<'END'
## Path:           Applications/PostgreSQL
## Default:        "~postgres/data"
POSTGRES_DATADIR="~postgres/data"
## Default:        ""
POSTGRES_OPTIONS=""
POSTGRES_TIMEOUT="600"
POSTGRES_LANG=""
POSTGRES_INITDB_OPTS="--auth=ident"
POSTGRES_DEFAULTVERSION=""
END
cat > "$units/postgresql.service" <<'END'
[Unit]
Description=PostgreSQL database server
After=syslog.target
After=network.target

[Service]
Type=forking
User=postgres
EnvironmentFile=-/etc/sysconfig/postgresql
ExecStart=/usr/share/postgresql/postgresql-script start
ExecStop=/usr/share/postgresql/postgresql-script stop
ExecReload=/usr/share/postgresql/postgresql-script reload
SendSIGKILL=no

[Install]
WantedBy=multi-user.target
END
echo 'd /run/postgresql 0755 postgres postgres -' > /usr/lib/tmpfiles.d/postgresql.conf
install -d -o postgres -g postgres -m 750 /var/lib/pgsql
cluster "/usr/lib/postgresql$version/bin" /var/lib/pgsql/data 5432

cat > /etc/my.cnf <<'END'
[client]
# socket         = /run/mysql/mysql.sock

[mysqld]
bind-address = 127.0.0.1
log-error = /var/log/mysql/mysqld.log
innodb_buffer_pool_size = 16M
server-id = 1

!includedir /etc/my.cnf.d
END
mkdir /etc/my.cnf.d
install -d -o mysql -g mysql -m 700 /var/lib/mysql
install -d -o mysql -g mysql -m 750 /var/log/mysql
mariadb-install-db --user=mysql --datadir=/var/lib/mysql --skip-test-db > /dev/null
ln -sf mariadbd /usr/sbin/mysqld
mkdir -p /usr/libexec/mysql
cat > /usr/libexec/mysql/mysql-systemd-helper <<'END'
#!/bin/bash
# Rebuilt: starts the server as documented, and is not SUSE's own.
INSTANCE=${2:-$INSTANCE}
config=/etc/my$INSTANCE.cnf
socket=/run/mysql/mysql.sock
case $1 in
install | upgrade) exit 0 ;;
start) exec /usr/sbin/mysqld \
    --defaults-file="$config" --user=mysql --socket="$socket" ;;
esac
END
chmod 755 /usr/libexec/mysql/mysql-systemd-helper
cat > "$units/mariadb.service" <<'END'
[Unit]
Description=MySQL server
Wants=basic.target
After=basic.target network.target

[Service]
Restart=on-abort
Type=notify
ExecStartPre=/usr/libexec/mysql/mysql-systemd-helper install
ExecStartPre=/usr/libexec/mysql/mysql-systemd-helper upgrade
ExecStart=/usr/libexec/mysql/mysql-systemd-helper start
TimeoutSec=300
ProtectSystem=full
ProtectHome=true
UMask=007

[Install]
WantedBy=multi-user.target
Alias=mysql.service
END
echo 'd /run/mysql 0755 mysql root -' > /usr/lib/tmpfiles.d/mariadb.conf

install -d /var/lib/firebird/secdb
chown firebird:firebird /var/log/firebird
chmod 750 /var/log/firebird
usermod --home /srv/firebird firebird
install -d -o firebird -g firebird -m 750 /srv/firebird
printf '\n# allow additional config files\ninclude $(dir_conf)/firebird.conf.d/*.conf\n' >> /etc/firebird/3.0/firebird.conf
mkdir /etc/firebird/3.0/firebird.conf.d
echo '# Rebuilt: settings of the server.' > /etc/firebird/3.0/firebird.conf.d/50-server.conf
ln -s /etc/firebird/firebird.conf.d /usr/lib/x86_64-linux-gnu/firebird/3.0/
firebird /srv/firebird/alias.fdb
cat > /etc/init.d/firebird <<'END'
#!/bin/sh
### BEGIN INIT INFO
# Provides:          firebird
# Required-Start:    $network $remote_fs
# Required-Stop:
# Default-Start:     2 3 5
# Default-Stop:
# Short-Description: Start Firebird
### END INIT INFO
# Rebuilt: starts the guardian as the package's script does, and is not SUSE's own.
if [ -r /etc/sysconfig/firebird ]; then
    . /etc/sysconfig/firebird
fi
FIREBIRD=/etc/firebird
FBRunUser=firebird
export FIREBIRD
case $1 in
start) runuser -u $FBRunUser -- /usr/sbin/fbguard -pidfile /run/firebird/default.pid -daemon -forever ;;
stop)
    pkill -x fbguard
    pkill -x firebird
    ;;
esac
END
chmod 755 /etc/init.d/firebird

systemctl daemon-reload
systemctl --quiet enable postgresql.service mariadb.service firebird.service

printf 'label: gpt\n,\n' | sfdisk --quiet --wipe always "$disk"
udevadm settle
mkfs.btrfs -q "$disk-part1"
uuid=$(blkid -p -s UUID -o value "$disk-part1")
mount "$disk-part1" /mnt
btrfs -q subvolume create /mnt/@
mkdir /mnt/@/usr
for name in opt srv usr/local var; do btrfs -q subvolume create "/mnt/@/$name"; done
chattr +C /mnt/@/var
umount /mnt
copy /var "$disk-part1" subvol=@/var
copy /srv "$disk-part1" subvol=@/srv
sed -i '1,/^# <file system>/d' /etc/fstab
for name in var usr/local srv opt; do
    echo "UUID=$uuid  /$name  btrfs  subvol=/@/$name  0  0" >> /etc/fstab
done
systemctl daemon-reload
sync
