# Last of all, because the old package is still there before. At an installation nothing runs yet.
systemctl try-restart plantstore.service plantstore-backup.timer > /dev/null 2>&1 || :
