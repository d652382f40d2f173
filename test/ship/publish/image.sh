#!/usr/bin/env bash
# image.sh IMAGE VERSION: builds the image with the executables of dist/release, for amd64 and arm64, and pushes it to
# IMAGE:VERSION, IMAGE:MAJOR.MINOR and IMAGE:latest. Prints its digest. FINAL_IMAGE replaces the base image of the Dockerfile.
set -euo pipefail
image=$1
version=$2
list=localhost/plantstore:$version

build() { # ARCHITECTURE TARGET
  local context name=plantstore-$version-$2
  context=$(mktemp --directory)
  mkdir --parents "$context/build/dist" "$context/data"
  tar --extract --gzip --file "dist/release/$name.tar.gz" --directory "$context/build/dist" --strip-components 1 "$name/plantstore"
  # The folder takes the place of the stage `build`, so the image and the archive have the same executable.
  buildah build --quiet --isolation chroot --format docker --platform "linux/$1" --manifest "$list" \
    --build-context "build=$context" ${FINAL_IMAGE:+--build-arg "FINAL_IMAGE=$FINAL_IMAGE"} \
    --timestamp "$(git show --no-patch --format=%ct HEAD)" \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$(git rev-parse HEAD)" \
    --label "org.opencontainers.image.source=$(node --print 'require("./package.json").homepage')" . >&2
  rm --recursive "$context"
}

build amd64 linux-x64
build arm64 linux-arm64
digest=$(mktemp)
for tag in "$version" "${version%.*}" latest; do
  buildah manifest push --quiet --all --format v2s2 --digestfile "$digest" "$list" "docker://$image:$tag" >&2
done
cat "$digest"
