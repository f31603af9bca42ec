#!/bin/sh
# Makes a base image without a container registry: Debian bookworm with its Python 3.11.
#
#   images/base/make.sh TAG
#
# Needs root, debootstrap and a Docker engine (on Debian: apt-get install debootstrap docker.io).
# The unpacked system is kept below XDG_CACHE_HOME, so that a second call takes seconds.
set -eu

tag=${1:?usage: images/base/make.sh TAG}
release=bookworm
architecture=$(dpkg --print-architecture)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/orbax-bench
system=$cache/$release-python3-$architecture.tar
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/base.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

if [ ! -s "$system" ]; then
  # python3-venv: the image's recipe makes a virtual environment. DEBIAN_MIRROR may name a mirror.
  if ! debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv \
    "$release" "$scratch/root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$scratch/log" 2>&1; then
    tail -n 5 "$scratch/log" >&2
    exit 1
  fi
  for unneeded in var/cache/apt var/lib/apt/lists var/log \
    usr/share/doc usr/share/info usr/share/locale usr/share/man; do
    find "$scratch/root/$unneeded" -mindepth 1 -delete
  done
  tar -c -C "$scratch/root" --numeric-owner -f "$scratch/system.tar" .
  mv "$scratch/system.tar" "$system"
fi

# A site with a certificate authority of its own reaches package indexes through that.
mkdir "$scratch/context"
cp -L /etc/ssl/certs/ca-certificates.crt "$scratch/context/"
docker import --change 'CMD ["python3"]' "$system" "$tag" >/dev/null
printf 'FROM %s\nCOPY ca-certificates.crt /etc/ssl/certs/\n' "$tag" >"$scratch/context/Dockerfile"
docker build --quiet --tag "$tag" "$scratch/context" >/dev/null
