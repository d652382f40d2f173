#!/usr/bin/env bash
# compare.sh ONE OTHER: sees that two machines of different architectures have made the same release, file by file.
# Bun sets one bit in an executable that it compiles for another architecture than its own, to say that it did so.
set -euo pipefail
one=$1
other=$2

executable() { # FOLDER TARGET
  tar --extract --gzip --to-stdout --wildcards --file "$1"/plantstore-*-"$2".tar.gz '*/plantstore'
}
same() { # NAME, DIFFERENT BYTES THAT ARE ALLOWED
  local differences
  differences=$(cmp --verbose "$3" "$4" | wc --lines) || true
  echo "$1: $differences different bytes"
  test "$differences" -le "$2"
}

for archive in "$one"/plantstore-*-darwin-*.tar.gz "$one"/plantstore-*.cdx.json; do
  same "$(basename "$archive")" 0 "$archive" "$other/$(basename "$archive")"
done
for target in linux-x64 linux-arm64; do
  same "the executable for $target" 1 <(executable "$one" "$target") <(executable "$other" "$target")
done
