#!/bin/sh
# try.sh FOLDER: starts the executable of an unpacked archive on this machine, creates a plant, starts it again and lists the plant.
set -eu
plantstore=$1/plantstore
folder=$(mktemp -d)
export PLANTSTORE_DATABASE="$folder/plantstore.db" PLANTSTORE_LISTEN="unix:$folder/socket"
if [ "$(uname)" = Darwin ]; then codesign --verify --strict --verbose=2 "$plantstore"; fi
"$plantstore" --version
token=$("$plantstore" token create --user me)

start() {
  "$plantstore" serve > "$folder/log" 2>&1 &
  pid=$!
  until "$plantstore" healthcheck 2> /dev/null; do
    if ! kill -0 "$pid" 2> /dev/null; then cat "$folder/log"; exit 1; fi
    sleep 0.1
  done
}
request() { # ARGUMENTS OF CURL
  curl --fail --silent --show-error --unix-socket "$folder/socket" --header "Authorization: Bearer $token" "$@" http://plants/plants
}

start
request --header 'Content-Type: application/json' --data '{"id":9223372036854775807,"name":"Monstera"}'
echo
kill "$pid"
wait "$pid"
start
listed=$(request)
kill "$pid"
wait "$pid"
"$plantstore" check
echo "$listed"
test "$listed" = '[{"name":"Monstera"}]'
rm -r "$folder"
