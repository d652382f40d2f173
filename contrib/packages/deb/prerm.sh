#!/bin/sh
set -e

# At an upgrade the old server goes on until the new files are in place, and postinst restarts it.
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop plantstore.service plantstore-backup.timer plantstore-backup.service > /dev/null || true
fi
