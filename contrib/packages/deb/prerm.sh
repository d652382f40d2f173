#!/bin/sh
set -e

# Also before an upgrade: the old server has ended before the new one migrates its database.
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop plantstore.service plantstore-backup.timer plantstore-backup.service > /dev/null || true
fi
