# 0 is a removal, 1 an upgrade.
if [ $1 -eq 0 ]; then
  systemctl --no-reload disable --now plantstore.service plantstore-backup.timer > /dev/null 2>&1 || :
fi
