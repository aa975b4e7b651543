import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  admin_socket: {
    type: "path",
    per_host: false,
    example: "/run/modhost/admin.sock",
    describe:
      "Path of the Unix socket at which commands such as `modhost status` reach the running server; default: `admin.sock` in `data_path`. Only the user that runs the server can connect. A path has at most 107 bytes.",
  },
  admin_port: {
    type: "port",
    default: 5282,
    applies: "live",
    per_host: false,
    describe:
      "Port of the dashboard and the Admin API over plain HTTP; 0 turns it off. No app is served there, so pages of apps have another origin. If the option is not set and the port is taken, the server starts without it.",
  },
  admin_interfaces: {
    type: "strings",
    default: ["127.0.0.1", "::1"],
    applies: "live",
    per_host: false,
    describe:
      'Addresses that `admin_port` listens on; "*" means all addresses. Callers from other machines need a token.',
  },
  admin_https_port: {
    type: "port",
    default: 0,
    applies: "live",
    per_host: false,
    example: 5283,
    describe:
      "Port of the dashboard and the Admin API over HTTPS, with the certificates of the server; 0 turns it off. Every caller needs a token there.",
  },
  admin_https_interfaces: {
    type: "strings",
    default: ["*"],
    applies: "live",
    per_host: false,
    describe: 'Addresses that `admin_https_port` listens on; "*" means all addresses.',
  },
  admin_local: {
    type: "enum",
    protects: true,
    values: ["same_user", "any_user", "none"],
    default: "same_user",
    per_host: false,
    describe:
      "Who may call the Admin API at `admin_port` from this machine without a token: the user that runs the server and root (only Linux reports the user of a connection), any user of the machine, or nobody.",
  },
  admin_tokens: {
    type: "any",
    secret: "keys",
    per_host: false,
    example: { "a-long-random-text": { name: "deploy", scopes: ["read", "admin"] } },
    describe:
      "Bearer tokens with which the Admin API may be called from anywhere: a list, or an object of tokens with their names in the record of changes and their scopes, `read` and `admin` (default: both).",
  },
  admin_hosts: {
    type: "strings",
    default: [],
    per_host: false,
    describe:
      "Host names, in addition to localhost and loopback addresses, at which browsers on this machine need no token for the Admin API. Only names below `.localhost` work: at other names, browsers do not report over plain HTTP which page sends a request, so a token is needed.",
  },
  admin_start_page: {
    type: "boolean",
    default: true,
    per_host: false,
    describe:
      "If nothing is mounted at `/`, show a start page there to callers who may use the Admin API: what is served at which path, what has failed, and what to try next. Others get the usual 404.",
  },
} as const satisfies OptionDeclarations;
