systemctl daemon-reload > /dev/null 2>&1 || :
