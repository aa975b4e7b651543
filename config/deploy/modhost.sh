#!/bin/sh
# /usr/local/bin/modhost: runs commands for the server of modhost.service, as its user and with its config file.
# For another installation: INSTALLATION=/opt/modhost-0.2.0 modhost check. With another Node.js: NODE=/opt/node-v26.12.1-linux-x64/bin/node
at=${INSTALLATION:-/opt/modhost}/node_modules
set -- "${NODE:-/opt/node/bin/node}" --disable-sigusr1 "$at/modhost/core/cli/launch.mjs" --config=/etc/modhost/modhost.config.yaml "$@"
[ "$(id -un)" = modhost ] || set -- runuser -u modhost -- "$@"
exec "$@"
