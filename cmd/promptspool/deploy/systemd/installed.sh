#!/bin/sh
# After the files are in place: on an installation, and on an upgrade, where services that run
# go on with the new program. Nothing is enabled or started: a sidecar has no server yet.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart promptspool-server.service promptspool-sidecar.service
