/** The layer rules of the source tree: which folder may import which. */

/**
 * The wings of the node, from bottom to top: each imports only from itself and from those before
 * it.
 */
const wings = ["util", "formats", "storage", "content", "network"];
/** Folders above all wings. They do not import each other. */
const upper = ["mount", "migration"];
/**
 * Folders that connect them, from bottom to top: each imports only from itself, from those before
 * it, and from the wings.
 */
const joining = ["node", "api", "library"];
const inWings = (names) => `^modules/mod_node/(${names.join("|")})/`;

/**
 * Folders of the core that import none of the others. Only `http` may use `relay`, which forwards
 * requests to another server, and `config` declares an option that `permissions` describes.
 */
const protocols = {
  permissions: "",
  config: "permissions/|",
  tls: "",
  net: "",
  http: "relay/|",
  metrics: "",
  tokens: "",
  relay: "",
  sandbox: "",
};

/**
 * Folders of the core above those, from bottom to top: none imports those after it, or its
 * neighbours. `host.ts` belongs to `host/`. The rule of `http/` is with the folders that import no
 * neighbour.
 */
const hostLevels = [
  ["ports/", "http/"],
  ["module/"],
  ["isolation/", "operations/"],
  ["host(?:/|\\.ts$)"],
  ["processes/", "testing/"],
];
const hostRooms = hostLevels.flat();
const nameOf = (room) => /^\w+/.exec(room)[0];

/**
 * Folders of `core/http`, from bottom to top: each imports only from itself and from those before
 * it, not from its neighbours.
 */
const httpLevels = [
  ["patches"],
  ["connection", "policy"],
  ["sse", "files"],
  ["message"],
  ["middleware"],
  ["routing"],
  ["lifecycle"],
  ["websocket"],
];
const httpRooms = httpLevels.flat();
const inHttp = (names) => `^core/http/(${names.join("|")})/`;

/** Calls `make` with each folder of the levels, and the list of the folders below it and itself. */
const eachRoom = (levels, make) =>
  levels.flatMap((rooms, at) => rooms.map((room) => make(room, [...levels.slice(0, at).flat(), room])));

/** Types of bundled modules that the package exports, such as `modhost/http_files`. */
const exportedTypes = Object.values(require("../../package.json").exports)
  .flatMap(({ source = "" }) => /^\.\/(modules\/[^/]+\/types\.ts)$/.exec(source)?.[1] ?? [])
  .map((file) => file.replaceAll(".", "\\."));

module.exports = {
  forbidden: [
    {
      name: "core-never-imports-modules",
      comment: "The host refers to bundled modules only as files that it loads.",
      severity: "error",
      from: { path: "^core/" },
      to: { path: "^modules/" },
    },
    {
      name: "modules-use-the-public-surface",
      comment: "A bundled module imports only what the package exports for every module author.",
      severity: "error",
      from: { path: "^modules/" },
      to: {
        path: "^core/",
        pathNot: "^core/(index|types|net/http|http/index|testing/index|cli/index)\\.ts$|^core/cli/launch\\.mjs$",
      },
    },
    {
      name: "commands-of-modules-use-the-command-line",
      comment: "No other file of a module may import its commands.",
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
      comment:
        "Modules use each other through module.depends(name), and may import the types that the package exports.",
      severity: "error",
      from: { path: "^modules/([^/]+)/" },
      to: { path: "^modules/", pathNot: `^modules/($1|mod_node)/|^(${exportedTypes.join("|")})$` },
    },
    {
      name: "the-node-is-imported-by-one-name",
      comment:
        "Code outside the node imports only modhost/node. A command that starts the node loads the module itself.",
      severity: "error",
      from: { path: "^modules/(?!mod_node/)" },
      to: { path: "^modules/mod_node/", pathNot: "^modules/mod_node/(index|mod_node)\\.ts$" },
    },
    {
      name: "only-hosts-load-the-module-of-the-node",
      comment: "Other modules depend on the node by name. The command line passes it to the host that it starts.",
      severity: "error",
      from: { path: "^modules/", pathNot: "^modules/(mod_node/|[^/]+/cli/)" },
      to: { path: "^modules/mod_node/mod_node\\.ts$" },
    },
    {
      name: "core-util-imports-no-other-room",
      comment: "core/util/ is shared by http, net, config and tls. It may import public types.",
      severity: "error",
      from: { path: "^core/util/" },
      to: { path: "^core/(?!util/|types)" },
    },
    ...Object.entries(protocols).map(([name, also]) => ({
      name: `${name}-imports-no-neighbour`,
      comment:
        "permissions, config, tls, net, http, metrics, tokens, relay and sandbox share core/util/. Only host.ts, host/ and module/ connect them with each other and with modules.",
      severity: "error",
      from: { path: `^core/${name}/` },
      to: { path: `^core/(?!${name}/|${also}util/|types)` },
    })),
    ...eachRoom(hostLevels, (room, below) => ({
      name: `${nameOf(room)}-imports-no-room-of-the-core-above-it`,
      severity: "error",
      from: { path: `^core/${room}` },
      to: { path: `^core/(?:${hostRooms.filter((other) => !below.includes(other)).join("|")})` },
    })).filter(({ name }) => !name.startsWith("http-")),
    {
      name: "every-file-of-the-core-is-in-a-room",
      comment: "Add a new folder to one of the lists above.",
      severity: "error",
      from: {
        path: "^core/[^/]+/",
        pathNot: `^core/(?:types/|util/|${Object.keys(protocols).join("/|")}/|cli/|${hostRooms.join("|")})`,
      },
      to: {},
    },
    ...eachRoom(httpLevels, (room, below) => ({
      name: `http-${room}-imports-no-room-above-it`,
      comment: "Every folder may import settings.ts, the types of the configuration.",
      severity: "error",
      from: { path: inHttp([room]) },
      to: { path: "^core/http/", pathNot: [inHttp(below), "^core/http/settings\\.ts$"] },
    })),
    {
      name: "every-file-of-http-is-in-a-room",
      comment: "Add a new folder to the list above.",
      severity: "error",
      from: { path: "^core/http/[^/]+/", pathNot: inHttp(httpRooms) },
      to: {},
    },
    {
      name: "nothing-imports-the-command-line",
      severity: "error",
      from: { path: "^core/", pathNot: "^core/cli/" },
      to: { path: "^core/cli/" },
    },
    {
      name: "the-command-line-uses-the-host",
      comment: "The command line uses modules only through methods of Host.",
      severity: "error",
      from: { path: "^core/cli/" },
      to: { path: "^core/module/" },
    },
    {
      name: "the-node-imports-no-http",
      comment: "The node works as a library without a host. As a module it imports only the types of modules.",
      severity: "error",
      from: { path: "^modules/mod_node/" },
      to: { path: "^core/(?!types\\.ts$)" },
    },
    {
      name: "rpc-and-commands-import-no-http",
      comment: "A command gets a typed call and the node, and returns a value, a stream or bytes.",
      severity: "error",
      from: { path: "^modules/mod_http_api/(commands|rpc)/" },
      to: { path: "^core/|^modules/mod_http_api/http/" },
    },
    {
      name: "rpc-imports-no-commands",
      severity: "error",
      from: { path: "^modules/mod_http_api/rpc/" },
      to: { path: "^modules/mod_http_api/commands/" },
    },
    {
      name: "engines-are-behind-their-interfaces",
      comment:
        "Only blockstore/store.ts, metadata/store.ts and external_sorted_map.ts are visible outside of storage/. open_stores/engines.ts opens the engines.",
      severity: "error",
      from: {
        path: "^modules/",
        pathNot:
          "^modules/mod_node/(migration/open_stores/engines\\.ts$|storage/(external_sorted_map\\.ts$|blockstore/(segments|flatfs)/|shared/|metadata/|lmdb/))",
      },
      to: {
        path: "^modules/mod_node/storage/(blockstore/(segments/|flatfs/|memory\\.ts$)|metadata/(lmdb|memory)\\.ts$|lmdb/)|node_modules/lmdb/",
      },
    },
    ...wings.map((wing, at) => ({
      name: `${wing}-imports-no-wing-above-it`,
      severity: "error",
      from: { path: inWings([wing]) },
      to: { path: "^modules/mod_node/", pathNot: inWings(wings.slice(0, at + 1)) },
    })),
    ...upper.map((room) => ({
      name: `${room}-imports-only-wings`,
      severity: "error",
      from: { path: inWings([room]) },
      to: { path: "^modules/mod_node/", pathNot: inWings([...wings, room]) },
    })),
    ...joining.map((room, at) => ({
      name: `${room}-imports-no-room-above-it`,
      severity: "error",
      from: { path: inWings([room]) },
      to: { path: "^modules/mod_node/", pathNot: inWings([...wings, ...upper, ...joining.slice(0, at + 1)]) },
    })),
    {
      name: "every-file-of-the-node-is-in-a-wing",
      comment: "Add a new folder to the lists above.",
      severity: "error",
      from: { path: "^modules/mod_node/[^/]+/", pathNot: inWings([...wings, ...upper, ...joining, "module"]) },
      to: {},
    },
    {
      name: "node-http-is-not-imported",
      comment:
        "An import makes Node load its fetch client, which takes 20 ms of each start and 6 MiB. See core/util/node_http.ts; modules call process.getBuiltinModule.",
      severity: "error",
      from: { path: "^(core|modules)/" },
      to: { path: "^(node:)?http$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "no-type-circles",
      comment: "A part must not import the whole: it declares a narrow interface of what it needs.",
      severity: "error",
      from: { path: "^(core|modules)/" },
      to: { circular: true, via: { dependencyTypes: ["type-only"] } },
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
