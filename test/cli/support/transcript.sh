# The functions of the steps of a transcript. STATE is a folder for what they keep between steps. A step that is about a second
# server begins with `server=two`.

# wait_until COMMAND: waits until a command succeeds, but not much longer than two minutes.
wait_until() {
  looks=0
  until "$@" >/dev/null 2>&1; do
    looks=$((looks + 1))
    [ $looks -lt 1200 ] || { echo "it never came about: $*"; return 1; }
    sleep 0.1
  done
}

# kill_when SIGNAL PID COMMAND: lets a process run for 50 ms at a time, and sends it a signal once COMMAND succeeds while it stands still.
kill_when() {
  signal=$1 process=$2
  shift 2
  wait_until stands_still_and "$@"
  kill -s "$signal" "$process" && { [ "$signal" = KILL ] || kill -s CONT "$process"; }
}
stands_still_and() { kill -s CONT "$process" && sleep 0.05 && kill -s STOP "$process" && "$@"; }

# healthcheck OPTIONS: `plantstore healthcheck`, again if a busy machine lets it take longer than it waits for an answer.
healthcheck() {
  wait_until checks_in_time "$@"
  cat "$STATE/check"
  cat "$STATE/check-told" >&2
  return "$(cat "$STATE/check-code")"
}
checks_in_time() {
  plantstore healthcheck "$@" >"$STATE/check" 2>"$STATE/check-told"
  echo $? >"$STATE/check-code"
  ! grep -qE 'took too long|ECONNRESET' "$STATE/check-told"
}

# serve OPTIONS: starts a server on plantstore.db and waits until it listens. If it cannot, prints what it says and exits as it does.
# The server before it is killed.
serve() {
  [ ! -s "$(at)/pid" ] || [ -s "$(at)/code" ] || end KILL
  mkdir -p "$(at)"
  rm -f "$(at)"/*
  (
    sh -c 'echo $$ >"$0/pid"; exec plantstore serve --listen 127.0.0.1:0 "$@"' "$(at)" "$@" >"$(at)/log" 2>"$(at)/told"
    echo $? >"$(at)/code"
  ) >/dev/null 2>&1 </dev/null &
  wait_until listens_or_has_ended
  [ ! -s "$(at)/code" ] || { told >&2; return "$(cat "$(at)/code")"; }
  found address | sed 's/\[::\]/127.0.0.1/' >"$(at)/url"
}

# end [SIGNAL]: sends a signal to the server, by default SIGTERM, and waits until it has ended. Exits as it does.
end() {
  kill -s "${1:-TERM}" "$(pid)"
  wait_until test -s "$(at)/code"
  return "$(cat "$(at)/code")"
}

# request METHOD PATH [TOKEN [BODY]] [OPTIONS OF CURL]: prints the status and the body of the answer.
request() {
  method=$1 path=$2 token=${3-} body=${4-}
  shift $(($# < 4 ? $# : 4))
  [ -z "$token" ] || set -- --header "Authorization: Bearer $token" "$@"
  [ -z "$body" ] || set -- --header 'Content-Type: application/json' --data-binary "$body" "$@"
  answer=$(ask "$path" --request "$method" --write-out '\n%{http_code}' "$@")
  body=${answer%
*}
  printf '%s\n' "${answer##*[!0-9]}${body:+ $body}"
}

# ask PATH [OPTIONS OF CURL]: prints the body of the answer as it is.
ask() {
  path=$1
  shift
  read -r server_url <"$STATE/${server:-one}/url"
  case $server_url in
    unix:*) curl --silent --show-error --unix-socket "${server_url#unix:}" "$@" "http://localhost$path" ;;
    *) curl --silent --show-error "$@" "$server_url$path" ;;
  esac
}

# logged FILTER [OPTIONS OF CURL]: asks for /healthz, and prints what jq finds in the line of the log.
logged() {
  filter=$1 id=$(cat /proc/sys/kernel/random/uuid)
  shift
  ask /healthz --output /dev/null --header "X-Request-Id: $id" "$@" || return
  wait_until grep -q "$id" "$(at)/log"
  grep "$id" "$(at)/log" | jq --compact-output "$filter"
}

# metrics [NAME]: prints the metrics of the server, or those whose names begin so.
metrics() { server_url=$(found metricsAddress); curl --silent --show-error "$server_url/metrics" | grep "^${1-}"; }

# The log of the server, what it has told on stderr, its process and its URL.
log() { cat "$(at)/log"; }
told() { cat "$(at)/told"; }
pid() { cat "$(at)/pid"; }
url() { cat "$(at)/url"; }

at() { echo "$STATE/${server:-one}"; }
found() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$(at)/log" | head -n 1; }
listens_or_has_ended() { [ -s "$(at)/code" ] || grep -q listening "$(at)/log"; }

# self_signed NAME [NAMES] [DAYS]: makes a certificate and its key in NAME.crt and NAME.key. signed_by AUTHORITY NAME NAMES: the same,
# by an authority, whose certificate follows that of the server. authority NAME: makes an authority.
self_signed() { certify "$1" "subjectAltName=${2-IP:127.0.0.1}" "${3-30}" -signkey "$1.key"; }
signed_by() { certify "$2" "subjectAltName=$3" 30 -CA "$1.crt" -CAkey "$1.key" -CAcreateserial && cat "$1.crt" >>"$2.crt"; }
authority() { certify "$1" basicConstraints=critical,CA:TRUE 30 -signkey "$1.key"; }
certify() {
  name=$1 extension=$2 days=$3
  shift 3
  openssl ecparam -name prime256v1 -genkey -noout -out "$name.key"
  openssl req -new -key "$name.key" -subj "/CN=$name" -addext "$extension" -out "$name.csr"
  openssl x509 -req -in "$name.csr" -copy_extensions copy -days "$days" "$@" -out "$name.crt" 2>/dev/null
}

# installed COMMAND: runs a command where a package has installed plantstore. Its settings are in the folder etc, its database in lib.
# The command knows the path from which it was copied as `executable`.
installed() {
  mkdir -p "$STATE/bin" etc lib && : >"$STATE/bin/plantstore"
  executable=$(readlink -f "$(command -v plantstore)") unshare --mount sh -euc '
    mount -t overlay -o "lowerdir=$STATE/bin:/usr/bin" none /usr/bin
    mount --bind "$executable" /usr/bin/plantstore
    for folder in etc lib; do
      parent=/etc; [ $folder = etc ] || parent=/var/lib
      mount -t tmpfs -o mode=755 none $parent
      mkdir $parent/plantstore
      mount --bind $folder $parent/plantstore
    done
    PATH=/usr/bin:/bin:/usr/sbin:/sbin exec "$@"' sh "$@"
}
