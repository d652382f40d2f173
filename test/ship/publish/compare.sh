#!/usr/bin/env bash
# compare.sh ONE OTHER: sees that two machines of different architectures have made the same release, file by file.
# Bun sets one bit in an executable that it compiles for another architecture than its own, to say that it did so.
set -euo pipefail
one=$1
other=$2
BIT_OF_CROSS_COMPILED=4

executable() { # FOLDER TARGET
  tar --extract --gzip --to-stdout --wildcards --file "$1"/plantstore-*-"$2".tar.gz '*/plantstore'
}
same() { # NAME FILE OTHER BIT
  local differences
  differences=$( (cmp --verbose "$2" "$3" 2>&1 || true) | head --lines 2 || true)
  if [ -z "$differences" ]; then
    echo "$1: the same bytes"
  elif [[ $differences =~ ^\ *[0-9]+\ +([0-7]+)\ +([0-7]+)$ ]] && (( (8#${BASH_REMATCH[1]} ^ 8#${BASH_REMATCH[2]}) == $4 )); then
    echo "$1: the same bytes but for one bit"
  else
    echo "$1: different bytes"
    exit 1
  fi
}

for archive in "$one"/plantstore-*-darwin-*.tar.gz "$one"/plantstore-*.cdx.json; do
  same "$(basename "$archive")" "$archive" "$other/$(basename "$archive")" 0
done
for target in linux-x64 linux-arm64; do
  same "the executable for $target" <(executable "$one" "$target") <(executable "$other" "$target") "$BIT_OF_CROSS_COMPILED"
done
