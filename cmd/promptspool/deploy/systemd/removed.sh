#!/bin/sh
# After the files are gone. The data stays, also after dpkg's purge: a spool may hold calls that
# no server has yet.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
echo "promptspool's data, if any, is still in /var/lib/promptspool and /var/lib/promptspool-server."
