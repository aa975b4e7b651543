import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  admin_socket: {
    type: "path",
    per_host: false,
    example: "/run/modhost/admin.sock",
    describe:
      "Path of the Unix socket at which commands such as `modhost status` reach the running server; default: `admin.sock` in `data_path`. Only the user that runs the server can connect. A path has at most 107 bytes.",
  },
  admin_local: {
    type: "enum",
    values: ["same_user", "any_user", "none"],
    default: "same_user",
    per_host: false,
    describe:
      "Who may call the Admin API at `/admin/api` from this machine without a token: the user that runs the server and root (where the system tells, which Linux does), any user of the machine, or nobody.",
  },
  admin_tokens: {
    type: "any",
    secret: "keys",
    per_host: false,
    example: { "a-long-random-text": { name: "deploy", scopes: ["read", "admin"] } },
    describe:
      "Bearer tokens with which the Admin API may be called from anywhere: a list, or an object of tokens with the name that stands in the record of changes, and their scopes, `read` and `admin` (both unless told otherwise).",
  },
  admin_hosts: {
    type: "strings",
    default: [],
    per_host: false,
    describe:
      "Host names, besides localhost and loopback addresses, at which callers on this machine need no token for the Admin API.",
  },
  admin_start_page: {
    type: "boolean",
    default: true,
    per_host: false,
    describe:
      "Where nothing is mounted at `/`, show those who may call the Admin API a page there that tells what is served where, what failed, and what to try next. Others get the 404 that is there anyway.",
  },
} as const satisfies OptionDeclarations;
