systemd-sysusers plantstore.conf > /dev/null 2>&1 || :
systemd-tmpfiles --create plantstore.conf > /dev/null 2>&1 || :
# The payload cannot name a group that does not exist yet. Commands believe the settings only if root alone can change them.
chown root:plantstore /etc/plantstore/plantstore.env > /dev/null 2>&1 || :
chmod 640 /etc/plantstore/plantstore.env > /dev/null 2>&1 || :
systemctl daemon-reload > /dev/null 2>&1 || :
if [ $1 -eq 1 ]; then
  # The presets of the distribution decide; those of Fedora and RHEL start nothing.
  systemctl --no-reload preset plantstore.service plantstore-backup.timer > /dev/null 2>&1 || :
  cat << 'END'
This starts Plant Store on 127.0.0.1:3000 and its nightly backups, and makes the first token, as root:
  systemctl enable --now plantstore.service plantstore-backup.timer
  runuser -u plantstore -- plantstore token create --user me --database /var/lib/plantstore/plantstore.db
Its settings are in /etc/plantstore/plantstore.env.
END
fi
