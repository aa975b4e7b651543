#!/bin/sh
# /usr/local/bin/modhost: the commands for the server that modhost.service runs, as its user and with its config file.
set -- /opt/modhost/node_modules/node/bin/node /opt/modhost/node_modules/modhost/core/cli/launch.mjs \
  --config=/etc/modhost/modhost.config.yaml "$@"
[ "$(id -un)" = modhost ] || set -- runuser -u modhost -- "$@"
exec "$@"
