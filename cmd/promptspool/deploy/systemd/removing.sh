#!/bin/sh
# Before the files go. dpkg says "remove" and rpm 0 when no other version takes over.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl disable --now promptspool-server.service promptspool-sidecar.service ;;
esac
