systemd-sysusers plantstore.conf > /dev/null 2>&1 || :
systemd-tmpfiles --create plantstore.conf > /dev/null 2>&1 || :
# The payload cannot name a group that does not exist yet. Commands believe the settings only if root alone can change them.
chown root:plantstore /etc/plantstore/plantstore.env > /dev/null 2>&1 || :
chmod 640 /etc/plantstore/plantstore.env > /dev/null 2>&1 || :
systemctl daemon-reload > /dev/null 2>&1 || :
if [ $1 -eq 1 ]; then
  # The presets of the distribution decide; those of Fedora and RHEL start nothing.
  systemctl --no-reload preset plantstore.service plantstore-backup.timer > /dev/null 2>&1 || :
  database=/var/lib/plantstore/plantstore.db
  echo "Plant Store has its settings in /etc/plantstore/plantstore.env."
  echo "This starts it on 127.0.0.1:3000, and its nightly backups, as root:"
  echo "  systemctl enable --now plantstore.service plantstore-backup.timer"
  # A database of an earlier installation has tokens.
  if [ ! -e $database ] || plantstore status --database $database --json | grep -q '"tokens": 0,'; then
    echo "This makes the first token:"
    echo "  runuser -u plantstore -- plantstore token create --user me --database $database"
  fi
fi
