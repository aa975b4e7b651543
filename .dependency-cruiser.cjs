/** The layer rules of the source tree: which room may look into which. */

/** Rooms of the node (folders, or files of their own), from the ground up: each looks only into those before it. */
const nodeRooms = [
  // Words and tools.
  ["errors", "agent", "web_failure", "async", "wire", "go", "size", "recent", "log"],
  // What blocks and peers are called, and where the node keeps what.
  ["cid", "peer_id", "lmdb", "metadata", "repo"],
  // Content.
  ["tar", "blocks", "dag", "car", "spill", "unixfs", "archive", "pins", "filestore", "ingest", "path", "files"],
  // Names and the network.
  ["keys", "name_records", "peers", "exchange", "streams", "routing", "pubsub", "remote_pins", "names", "network"],
  // The node itself, and what stands on all of it.
  ["mount", "seed", "adopt", "stores", "types", "local_node", "migrate", "index"],
].flat();

const inRooms = (rooms) => `^modules/mod_http_api/node/(${rooms.join("|")})(/|\\.ts$)`;

module.exports = {
  forbidden: [
    {
      name: "core-never-imports-modules",
      comment: "The host knows bundled modules only as files that it loads.",
      severity: "error",
      from: { path: "^core/" },
      to: { path: "^modules/" },
    },
    {
      name: "modules-use-the-public-surface",
      comment: "A bundled module has no private door: what it needs is exported for every module author.",
      severity: "error",
      from: { path: "^modules/" },
      to: { path: "^core/", pathNot: "^core/(index|types|net/http|http/index|testing/index|cli/index)\\.ts$" },
    },
    {
      name: "commands-that-modules-bring-use-the-command-line",
      comment: "Nothing else of a module knows of it.",
      severity: "error",
      from: { path: "^modules/", pathNot: "^modules/[^/]+/cli/" },
      to: { path: "^core/cli/" },
    },
    {
      name: "only-the-command-line-uses-the-commands-of-modules",
      severity: "error",
      from: { path: "^modules/", pathNot: "^modules/[^/]+/cli/" },
      to: { path: "^modules/[^/]+/cli/" },
    },
    {
      name: "modules-import-each-other-only-through-depends",
      comment: "module.depends(name) is the way from one module to another; modhost/node is there for every author.",
      severity: "error",
      from: { path: "^modules/([^/]+)/" },
      to: { path: "^modules/", pathNot: "^modules/($1/|mod_http_api/node/index\\.ts$)" },
    },
    {
      name: "protocol-and-config-do-not-know-the-module-layer",
      comment: "Only host.ts and module/ join protocol code with modules.",
      severity: "error",
      from: { path: "^core/(http|net|tls|config)/" },
      to: { path: "^core/(module|cli|testing)/|^core/host\\.ts$" },
    },
    {
      name: "nothing-imports-the-command-line",
      severity: "error",
      from: { path: "^core/", pathNot: "^core/cli/" },
      to: { path: "^core/cli/" },
    },
    {
      name: "the-command-line-uses-the-host",
      comment: "What the command line needs of the modules is a method of Host.",
      severity: "error",
      from: { path: "^core/cli/" },
      to: { path: "^core/module/" },
    },
    {
      name: "the-node-knows-no-http",
      comment: "It works as a library, with no host around it.",
      severity: "error",
      from: { path: "^modules/mod_http_api/node/" },
      to: { path: "^core/|^modules/(?!mod_http_api/node/)" },
    },
    {
      name: "commands-know-no-http",
      comment: "A command gets a typed call and the node, and returns a value, a stream or bytes.",
      severity: "error",
      from: { path: "^modules/mod_http_api/commands/" },
      to: { path: "^core/" },
    },
    {
      name: "engines-are-behind-their-interfaces",
      comment:
        "blocks/store.ts, metadata/store.ts and spill.ts are all that anybody knows of how things are kept; stores/engines.ts opens the engines.",
      severity: "error",
      from: {
        path: "^modules/mod_http_api/",
        pathNot:
          "^modules/mod_http_api/node/(stores/engines\\.ts$|spill\\.ts$|blocks/(segments|flatfs)/|metadata/|lmdb/)",
      },
      to: {
        path: "^modules/mod_http_api/node/(blocks/(segments/|flatfs/|memory\\.ts$)|metadata/(lmdb|memory)\\.ts$|lmdb/)|node_modules/lmdb/",
      },
    },
    ...nodeRooms.slice(0, -1).map((room, at) => ({
      name: `${room}-knows-no-room-above-it`,
      severity: "error",
      from: { path: inRooms([room]) },
      to: { path: inRooms(nodeRooms.slice(at + 1)) },
    })),
    {
      name: "every-room-of-the-node-has-its-place",
      comment: "A new room is put into the list above.",
      severity: "error",
      from: { path: "^modules/mod_http_api/node/", pathNot: inRooms(nodeRooms) },
      to: {},
    },
    {
      name: "no-cycles",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { conditionNames: ["source", "import", "node", "default"], exportsFields: ["exports"] },
  },
};
