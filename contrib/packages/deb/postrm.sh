#!/bin/sh
set -e

if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload > /dev/null || true
fi
[ "$1" = purge ] || exit 0

if command -v deb-systemd-helper > /dev/null; then
  deb-systemd-helper purge plantstore.service plantstore-backup.timer > /dev/null || true
fi
settings=/etc/plantstore/plantstore.env
if command -v ucf > /dev/null; then
  ucf --purge $settings
  ucfr --purge plantstore $settings
fi
rm -f /var/lib/systemd/timers/stamp-plantstore-backup.timer $settings $settings.ucf-old $settings.ucf-new $settings.ucf-dist

for kept in /etc/plantstore /var/lib/plantstore /var/backups/plantstore; do
  [ ! -d $kept ] || rmdir --ignore-fail-on-non-empty $kept
  [ ! -d $kept ] || echo "Kept, because it is not empty: $kept"
done
echo "Kept, because files may belong to it: the user plantstore"
