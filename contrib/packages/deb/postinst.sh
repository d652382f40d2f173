#!/bin/sh
set -e

case "$1" in
  configure | abort-upgrade | abort-deconfigure | abort-remove) ;;
  *) exit 0 ;;
esac

systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} plantstore.conf
systemd-tmpfiles ${DPKG_ROOT:+--root="$DPKG_ROOT"} --create plantstore.conf || true

if [ "$1" = configure ]; then
  settings=/etc/plantstore/plantstore.env
  # Settings that somebody has changed stay as they are, and the new file is put beside them.
  UCF_FORCE_CONFFOLD=1 ucf /usr/share/plantstore/plantstore.env $settings
  ucfr plantstore $settings
  # They may hold the password of a database. Commands believe them only if root alone can change them.
  if [ -e $settings ]; then
    chown root:plantstore $settings
    chmod 640 $settings
  fi
fi

for unit in plantstore.service plantstore-backup.timer; do
  deb-systemd-helper unmask $unit > /dev/null || true
  # A unit that was never installed counts as enabled.
  if deb-systemd-helper --quiet was-enabled $unit; then
    deb-systemd-helper enable $unit > /dev/null || true
  else
    deb-systemd-helper update-state $unit > /dev/null || true
  fi
done
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload > /dev/null || true
  # A restart starts what is enabled, and leaves alone what an administrator has disabled and stopped.
  deb-systemd-invoke restart plantstore.service plantstore-backup.timer > /dev/null || true
fi

# At the first installation there is no version before.
if [ "$1" = configure ] && [ -z "$2" ]; then
  database=/var/lib/plantstore/plantstore.db
  echo "Plant Store serves http://127.0.0.1:3000. Its settings are in /etc/plantstore/plantstore.env."
  # A database of an earlier installation has tokens.
  if [ ! -e $database ] || plantstore status --database $database --json | grep -q '"tokens": 0,'; then
    echo "This makes the first token, as root:"
    echo "  runuser -u plantstore -- plantstore token create --user me --database $database"
  fi
fi
