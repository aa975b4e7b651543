#!/bin/sh
# /usr/local/bin/modhost: the commands for the server that modhost.service runs, as its user and with its config file.
# Of another installation: INSTALLATION=/opt/modhost-0.2.0 modhost check, and by another Node.js: NODE=/opt/node-v24.21.0-linux-x64/bin/node
at=${INSTALLATION:-/opt/modhost}/node_modules
set -- "${NODE:-/opt/node/bin/node}" --disable-sigusr1 "$at/modhost/core/cli/launch.mjs" --config=/etc/modhost/modhost.config.yaml "$@"
[ "$(id -un)" = modhost ] || set -- runuser -u modhost -- "$@"
exec "$@"
