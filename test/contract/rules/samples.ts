/** For each rule of `npm run layers`, imports that it forbids. */

/** An import that is written into a new file of a folder. */
export interface Import {
  /** The folder that the file is made in; it is there, unless it is new. */
  readonly from: string;
  readonly isNew?: true;
  /** A file that is there, any of a folder (`path/`), or a package. */
  readonly to: string;
  /** Of types alone. */
  readonly types?: true;
}

/** Two new files in one folder that import each other. */
export interface Circle {
  readonly circle: string;
  readonly types?: true;
}

export type Sample = Import | Circle;

const node = "modules/mod_node";
const wing = (from: string, to: string): Import => ({ from: `${node}/${from}`, to: `${node}/${to}` });

export const samples: Readonly<Record<string, readonly Sample[]>> = {
  "core-never-imports-modules": [{ from: "core/module", to: "modules/mod_http_files/index.ts" }],
  "modules-use-the-public-surface": [
    { from: "modules/mod_http_files", to: "core/host.ts" },
    { from: "modules/mod_http_api/http", to: "core/util/", types: true },
  ],
  "commands-that-modules-bring-use-the-command-line": [{ from: "modules/mod_http_pinning", to: "core/cli/index.ts" }],
  "only-the-command-line-uses-the-commands-of-modules": [
    { from: "modules/mod_http_api/http", to: "modules/mod_http_api/cli/" },
  ],
  "modules-import-each-other-only-through-depends": [
    { from: "modules/mod_http_files", to: "modules/mod_http_errors/index.ts" },
    { from: node, to: "modules/mod_http_api/rpc/" },
  ],
  "the-node-has-one-door": [
    { from: "modules/mod_http_api/commands", to: `${node}/util/` },
    { from: "modules/mod_http_pinning", to: `${node}/mount/` },
    { from: "modules/mod_http_api/cli", to: `${node}/api/`, types: true },
  ],
  "only-hosts-load-the-module-of-the-node": [{ from: "modules/mod_http_pinning", to: "modules/mod_node/mod_node.ts" }],
  "core-util-knows-nobody": [{ from: "core/util", to: "core/net/http.ts" }],
  "config-knows-no-neighbour": [{ from: "core/config", to: "core/net/http.ts" }],
  "tls-knows-no-neighbour": [{ from: "core/tls", to: "core/config/index.ts" }],
  "net-knows-no-neighbour": [{ from: "core/net", to: "core/http/index.ts", types: true }],
  "http-knows-no-neighbour": [{ from: "core/http", to: "core/net/http.ts" }],
  "metrics-knows-no-neighbour": [{ from: "core/metrics", to: "core/http/index.ts" }],
  "tokens-knows-no-neighbour": [{ from: "core/tokens", to: "core/http/index.ts" }],
  "nothing-imports-the-command-line": [{ from: "core/module", to: "core/cli/index.ts" }],
  "the-command-line-uses-the-host": [{ from: "core/cli", to: "core/module/" }],
  "the-node-knows-no-http": [{ from: `${node}/network`, to: "core/http/index.ts" }],
  "rpc-and-commands-know-no-http": [
    { from: "modules/mod_http_api/rpc", to: "core/index.ts" },
    { from: "modules/mod_http_api/commands", to: "modules/mod_http_api/http/" },
  ],
  "rpc-knows-no-commands": [{ from: "modules/mod_http_api/rpc", to: "modules/mod_http_api/commands/index.ts" }],
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
  "mount-stands-on-the-wings-alone": [wing("mount", "node.ts")],
  "migration-stands-on-the-wings-alone": [wing("migration", "mount/")],
  "every-file-of-the-node-has-its-wing": [{ ...wing("broken", "util/"), isNew: true }],
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
