/** For each rule of `npm run layers`, imports that it forbids. */

/** An import that is written into a new file of a folder. */
export interface Import {
  /** The folder of the new file. It exists, unless `isNew` is set. */
  readonly from: string;
  readonly isNew?: true;
  /** An existing file, any file of a folder (`path/`), or a package. */
  readonly to: string;
  /** Whether only types are imported. */
  readonly types?: true;
}

/** Two new files in one folder that import each other. */
export interface Circle {
  readonly circle: string;
  readonly types?: true;
}

export type Sample = Import | Circle;

const node = "modules/mod_node";
const room = (from: string, to: string): Import => ({
  from: `core/http/${from}`,
  to: `core/http/${to ? `${to}/` : ""}`,
});
const wing = (from: string, to: string): Import => ({ from: `${node}/${from}`, to: `${node}/${to}` });

export const samples: Readonly<Record<string, readonly Sample[]>> = {
  "core-never-imports-modules": [{ from: "core/module", to: "modules/mod_http_files/index.ts" }],
  "modules-use-the-public-surface": [
    { from: "modules/mod_http_files", to: "core/host.ts" },
    { from: "modules/mod_http_api/http", to: "core/util/", types: true },
  ],
  "commands-of-modules-use-the-command-line": [{ from: "modules/mod_http_pinning", to: "core/cli/index.ts" }],
  "only-the-command-line-uses-the-commands-of-modules": [
    { from: "modules/mod_http_api/http", to: "modules/mod_http_api/cli/" },
  ],
  "modules-import-each-other-only-through-depends": [
    { from: "modules/mod_http_files", to: "modules/mod_http_errors/index.ts" },
    { from: node, to: "modules/mod_http_api/rpc/" },
  ],
  "the-node-is-imported-by-one-name": [
    { from: "modules/mod_http_api/commands", to: `${node}/util/` },
    { from: "modules/mod_http_pinning", to: `${node}/mount/` },
    { from: "modules/mod_http_api/cli", to: `${node}/api/`, types: true },
  ],
  "only-hosts-load-the-module-of-the-node": [{ from: "modules/mod_http_pinning", to: "modules/mod_node/mod_node.ts" }],
  "core-util-imports-no-other-room": [{ from: "core/util", to: "core/net/http.ts" }],
  "config-imports-no-neighbour": [{ from: "core/config", to: "core/net/http.ts" }],
  "permissions-imports-no-neighbour": [{ from: "core/permissions", to: "core/config/index.ts" }],
  "tls-imports-no-neighbour": [{ from: "core/tls", to: "core/config/index.ts" }],
  "net-imports-no-neighbour": [{ from: "core/net", to: "core/http/index.ts", types: true }],
  "http-imports-no-neighbour": [{ from: "core/http", to: "core/net/http.ts" }],
  "relay-imports-no-neighbour": [{ from: "core/relay", to: "core/http/index.ts", types: true }],
  "sandbox-imports-no-neighbour": [{ from: "core/sandbox", to: "core/relay/channel.ts" }],
  "http-patches-imports-no-room-above-it": [room("patches/node", "connection")],
  "http-connection-imports-no-room-above-it": [
    room("connection", "policy"),
    { ...room("connection", ""), types: true },
  ],
  "http-policy-imports-no-room-above-it": [room("policy", "connection"), room("policy", "sse")],
  "http-sse-imports-no-room-above-it": [room("sse", "files"), room("sse", "message")],
  "http-files-imports-no-room-above-it": [room("files", "sse"), room("files", "message")],
  "http-message-imports-no-room-above-it": [room("message/multipart", "middleware")],
  "http-middleware-imports-no-room-above-it": [room("middleware", "routing")],
  "http-routing-imports-no-room-above-it": [room("routing", "lifecycle")],
  "http-lifecycle-imports-no-room-above-it": [room("lifecycle", "websocket")],
  "http-websocket-imports-no-room-above-it": [{ from: "core/http/websocket", to: "core/http/service.ts" }],
  "ports-imports-no-room-of-the-core-above-it": [
    { from: "core/ports", to: "core/module/" },
    { from: "core/ports", to: "core/http/index.ts" },
  ],
  "module-imports-no-room-of-the-core-above-it": [{ from: "core/module", to: "core/isolation/", types: true }],
  "isolation-imports-no-room-of-the-core-above-it": [{ from: "core/isolation", to: "core/operations/" }],
  "operations-imports-no-room-of-the-core-above-it": [{ from: "core/operations", to: "core/host.ts" }],
  "host-imports-no-room-of-the-core-above-it": [{ from: "core/host", to: "core/processes/" }],
  "processes-imports-no-room-of-the-core-above-it": [{ from: "core/processes", to: "core/testing/" }],
  "testing-imports-no-room-of-the-core-above-it": [{ from: "core/testing", to: "core/processes/" }],
  "every-file-of-the-core-is-in-a-room": [{ from: "core/broken", isNew: true, to: "core/util/" }],
  "every-file-of-http-is-in-a-room": [{ from: "core/http/broken", isNew: true, to: "core/util/" }],
  "metrics-imports-no-neighbour": [{ from: "core/metrics", to: "core/http/index.ts" }],
  "tokens-imports-no-neighbour": [{ from: "core/tokens", to: "core/http/index.ts" }],
  "nothing-imports-the-command-line": [{ from: "core/module", to: "core/cli/index.ts" }],
  "the-command-line-uses-the-host": [{ from: "core/cli", to: "core/module/" }],
  "the-node-imports-no-http": [{ from: `${node}/network`, to: "core/http/index.ts" }],
  "rpc-and-commands-import-no-http": [
    { from: "modules/mod_http_api/rpc", to: "core/index.ts" },
    { from: "modules/mod_http_api/commands", to: "modules/mod_http_api/http/" },
  ],
  "rpc-imports-no-commands": [{ from: "modules/mod_http_api/rpc", to: "modules/mod_http_api/commands/index.ts" }],
  "engines-are-behind-their-interfaces": [
    wing("content/mfs", "storage/blockstore/memory.ts"),
    wing("storage/repo", "storage/lmdb/"),
    { from: `${node}/storage/keystore`, to: "lmdb" },
  ],
  "util-imports-no-wing-above-it": [wing("util", "formats/cid/")],
  "formats-imports-no-wing-above-it": [wing("formats/cid", "storage/repo/")],
  "storage-imports-no-wing-above-it": [wing("storage/repo", "content/dag/")],
  "content-imports-no-wing-above-it": [wing("content/mfs", "network/swarm/")],
  "network-imports-no-wing-above-it": [wing("network/bitswap", "mount/")],
  "mount-imports-only-wings": [wing("mount", "node/")],
  "migration-imports-only-wings": [wing("migration", "mount/")],
  "node-imports-no-room-above-it": [wing("node", "library/")],
  "api-imports-no-room-above-it": [wing("api", "library/")],
  "library-imports-no-room-above-it": [{ from: `${node}/library`, to: `${node}/index.ts` }],
  "every-file-of-the-node-is-in-a-wing": [{ ...wing("broken", "util/"), isNew: true }],
  "no-cycles": [{ circle: `${node}/content/dag` }, { circle: "core/module" }],
  "node-http-is-not-imported": [
    { from: "core/http", to: "node:http" },
    { from: "modules/mod_http_proxy", to: "node:http" },
  ],
  "no-type-circles": [
    { circle: "core/http", types: true },
    { circle: "modules/mod_node/api", types: true },
  ],
};
