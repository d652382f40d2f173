if [ $1 -eq 0 ]; then
  rm -f /var/lib/systemd/timers/stamp-plantstore-backup.timer
fi
systemctl daemon-reload > /dev/null 2>&1 || :
