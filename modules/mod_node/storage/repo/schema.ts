/**
 * All keys of the configuration with kind, initial value and meaning. The document of a new repo,
 * the decoder and the reference page are derived from this table.
 */
import { failure } from "../../util/errors.ts";
import { autoConfKeys } from "./autoconf/keys.ts";
import { type ConfigKey, experiment, key, laterSections, structNames } from "./config_key.ts";
import { bootstrapPeers, defaultAddresses, defaultSpec } from "./defaults.ts";
import { importKeys } from "./import_keys.ts";
import { isObject, type JsonObject, setAt } from "./json.ts";
import { mountKeys } from "./mount_keys.ts";
import { networkKeys } from "./network_keys.ts";
import { provideKeys } from "./provide_keys.ts";
import { retrievalKeys } from "./retrieval_keys.ts";
import {
  anything,
  bool,
  count,
  durationText,
  type FieldKind,
  flag,
  int,
  int64,
  type Kind,
  list,
  map,
  natMode,
  optionalInt,
  optionalText,
  peerAddresses,
  priority,
  sizeText,
  strings,
  struct,
  text,
  type ValueOf,
} from "./value_kinds.ts";
import {
  authScope,
  gateway,
  headers,
  plugin,
  remoteService,
  router,
  routerChoice,
  texts,
  throttle,
} from "./value_structs.ts";

/** Keys in the order of a new document. */
export const configKeys = {
  "Identity.PeerID": key("start", text, "", "Peer id of the node; it must match the private key."),
  "Identity.PrivKey": key(
    "start",
    text,
    undefined,
    "Private key, its protobuf in base64. The API neither shows nor changes it.",
  ),
  "Datastore.StorageMax": key(
    "live",
    sizeText,
    "10GB",
    "Size of the repo for automatic garbage collection; it is not a limit.",
  ),
  "Datastore.StorageGCWatermark": key(
    "live",
    int64,
    90,
    "Percent of StorageMax from which garbage is collected; 0 is 90.",
  ),
  "Datastore.GCPeriod": key("live", durationText, "1h", "How often the size is checked."),
  "Datastore.Type": key("start", text, undefined, "Key of older versions; a repo that has it is refused."),
  "Datastore.Path": key("start", text, undefined, "Key of older versions; a repo that has it is refused."),
  "Datastore.NoSync": key("none", bool, undefined, "Key of older versions, without effect."),
  "Datastore.Params": key("none", anything, undefined, "Key of older versions, without effect."),
  "Datastore.Spec": key(
    "start",
    map(anything, "object"),
    defaultSpec,
    "The stores of blocks and metadata; must match the file `datastore_spec`.",
  ),
  "Datastore.HashOnRead": key("live", bool, false, "Check every block that is read against its CID."),
  "Datastore.BloomFilterSize": key("none", int, 0, "Without effect; the block store has its own index."),
  "Addresses.Swarm": key("live", texts, defaultAddresses.Swarm, "Addresses on which the node listens for peers."),
  "Addresses.Announce": key("live", texts, [], "If any are listed, exactly these addresses are announced."),
  "Addresses.AppendAnnounce": key(
    "live",
    texts,
    undefined,
    "Addresses that are announced in addition to the others, such as the address of a gateway: `/dns/gateway.example/tcp/443/tls/http`.",
  ),
  "Addresses.NoAnnounce": key(
    "live",
    texts,
    [],
    "Addresses, and masks such as `/ip4/10.0.0.0/ipcidr/8`, that are never announced.",
  ),
  "Addresses.API": key("live", strings, defaultAddresses.API, "Addresses on which the RPC API listens."),
  "Addresses.Gateway": key(
    "live",
    strings,
    defaultAddresses.Gateway,
    "Addresses on which the gateway and the read-only commands listen; empty disables them.",
  ),
  ...mountKeys,
  "Discovery.MDNS.Enabled": key("live", bool, true, "Find peers on the local network."),
  "Discovery.MDNS.Interval": key("live", int, 10, "Seconds between two searches; 0 is 5."),
  "Routing.Type": key(
    "live",
    text,
    "dht",
    "`dht`, `dhtclient`, `dhtserver` or `none`; with HTTP routers also `auto`, `autoclient`, `delegated` or `custom`. Empty is `auto`, which without HTTP routers is `dht`. Enabling or disabling the DHT takes effect at the next start.",
  ),
  "Routing.DelegatedRouters": key(
    "live",
    texts,
    undefined,
    "URLs of HTTP routers that `auto`, `autoclient` and `delegated` use: `https://HOST`, or `https://HOST/routing/v1/providers` (`peers`, `ipns`) for one kind of request only.",
  ),
  "Routing.Routers": key(
    "live",
    map(router),
    undefined,
    "Name to `{Type, Parameters}` for `custom`: `http` with `Endpoint`, `dht` with `Mode` and `PublicIPNetwork`, `parallel` and `sequential` with `Routers`, a list of `{RouterName, Timeout, IgnoreErrors, ExecuteAfter}`, and `Timeout`.",
  ),
  "Routing.Methods": key(
    "live",
    map(routerChoice),
    undefined,
    "Method to `{RouterName}` for `custom`: all of `find-providers`, `find-peers`, `get-ipns`, `put-ipns` and `provide`.",
  ),
  "Ipns.RepublishPeriod": key(
    "live",
    durationText,
    "",
    "How often names are republished: 1m to 24h, or any interval with `DEBUG=1`; empty is 4h.",
  ),
  "Ipns.RecordLifetime": key("live", durationText, "", "Lifetime of republished records; empty is 24h."),
  "Ipns.ResolveCacheSize": key("live", int, 128, "Maximum number of cached names; 0 is 128."),
  "Ipns.DelegatedPublishers": key(
    "live",
    texts,
    undefined,
    "URLs of HTTP routers to which `auto`, `autoclient` and `delegated` also publish names.",
  ),
  Bootstrap: key("live", texts, bootstrapPeers, "Peers that are dialled at the start."),
  "Gateway.HTTPHeaders": key(
    "live",
    headers,
    {
      "Access-Control-Allow-Headers": ["X-Requested-With", "Range", "User-Agent"],
      "Access-Control-Allow-Methods": ["GET"],
      "Access-Control-Allow-Origin": ["*"],
    },
    "Additional headers of the gateway's responses. CORS headers that list methods and headers are merged with those that the gateway needs.",
  ),
  "Gateway.RootRedirect": key("live", text, "", "Redirect target of `/` on the gateway; empty is none."),
  "Gateway.Writable": key("live", bool, false, "POST, PUT and DELETE on the gateway make new content."),
  "Gateway.PathPrefixes": key("none", texts, [], "Values allowed in X-Ipfs-Path-Prefix (deprecated)."),
  "Gateway.APICommands": key("none", texts, [], "Not used."),
  "Gateway.NoFetch": key("live", bool, false, "The gateway only serves content on this machine."),
  "Gateway.NoDNSLink": key("live", bool, false, "Do not look up a DNSLink for the Host header."),
  "Gateway.PublicGateways": key(
    "live",
    map(gateway),
    null,
    "Host name to `{Paths, UseSubdomains, NoDNSLink, InlineDNSLink, DeserializedResponses}`, or to null.",
  ),
  "Gateway.DeserializedResponses": key(
    "live",
    flag,
    undefined,
    "False: the gateway only serves formats that a client can verify: raw blocks, archives (CAR) and name records.",
  ),
  "Gateway.ExposeRoutingAPI": key(
    "live",
    flag,
    undefined,
    "False: the gateway does not serve `/routing/v1`, where clients look up providers, peers and records.",
  ),
  "Gateway.DisableHTMLErrors": key(
    "live",
    flag,
    undefined,
    "True: browsers get errors as a line of text instead of a page.",
  ),
  "Gateway.RetrievalTimeout": key(
    "live",
    durationText,
    undefined,
    "How long a response of the gateway waits for its next bytes; empty is 30s.",
  ),
  "Gateway.MaxRequestDuration": key(
    "live",
    durationText,
    undefined,
    "Maximum duration of a response of the gateway; empty is 1h.",
  ),
  "Gateway.MaxConcurrentRequests": key(
    "live",
    count,
    undefined,
    "Maximum number of concurrent gateway requests; null is 4096, 0 is no limit.",
  ),
  "Gateway.MaxRangeRequestFileSize": key(
    "live",
    count,
    undefined,
    "Maximum bytes of a file of which the gateway serves ranges; null and 0 are no limit.",
  ),
  ...retrievalKeys,
  "API.HTTPHeaders": key(
    "live",
    headers,
    {},
    "Headers of the RPC API's responses. Access-Control-Allow-Origin, -Methods and -Credentials control CORS.",
  ),
  "API.Authorizations": key(
    "live",
    map(authScope),
    undefined,
    "Name to `{AuthSecret, AllowedPaths}`: secrets that the RPC API requires of its callers, as in Kubo.",
  ),
  "Swarm.AddrFilters": key("live", texts, null, "Masks of addresses that are neither dialled nor accepted."),
  "Swarm.DisableBandwidthMetrics": key("live", bool, false, "Do not count bytes; `stats/bw` then fails."),
  "Swarm.DisableNatPortMap": key("live", bool, false, "Do not ask the router for a port."),
  "Swarm.DisableRelay": key("live", bool, undefined, "Deprecated; `Swarm.Transports.Network.Relay` overrides it."),
  "Swarm.EnableRelayHop": key("live", bool, false, "Be a relay for others."),
  "Swarm.EnableAutoRelay": key("live", bool, false, "Be reachable through a relay that is found among the peers."),
  "Swarm.Transports.Network.QUIC": key("live", flag, undefined, "QUIC; on by default, off in a private network."),
  "Swarm.Transports.Network.TCP": key("live", flag, undefined, "TCP; on by default."),
  "Swarm.Transports.Network.Websocket": key("live", flag, undefined, "WebSockets; on by default."),
  "Swarm.Transports.Network.Relay": key("live", flag, undefined, "Connections through relays; on by default."),
  "Swarm.Transports.Security.TLS": key("live", priority, undefined, "300 by default."),
  "Swarm.Transports.Security.SECIO": key("none", priority, undefined, "No longer supported; a value is only logged."),
  "Swarm.Transports.Security.Noise": key(
    "live",
    priority,
    undefined,
    "100 by default: nodes of version 0.9 do not accept this node's TLS.",
  ),
  "Swarm.Transports.Multiplexers.Yamux": key("live", priority, undefined, "100 by default."),
  "Swarm.Transports.Multiplexers.Mplex": key("live", priority, undefined, "200 by default."),
  "Swarm.ConnMgr.Type": key(
    "live",
    text,
    "basic",
    "`basic`, or `none` for no limit; empty is basic with built-in numbers.",
  ),
  "Swarm.ConnMgr.LowWater": key("live", int, 600, "Number of connections that stay open when some are closed."),
  "Swarm.ConnMgr.HighWater": key("live", int, 900, "Number of connections above which some are closed."),
  "Swarm.ConnMgr.GracePeriod": key(
    "live",
    durationText,
    "20s",
    "How long a new connection is protected from being closed.",
  ),
  "Swarm.ResourceMgr.Enabled": key("live", flag, undefined, "False: its limits are neither enforced nor shown."),
  "Swarm.ResourceMgr.MaxMemory": key(
    "live",
    optionalText,
    undefined,
    "Allows one connection per MiB, for example `4GiB`.",
  ),
  "Swarm.ResourceMgr.MaxFileDescriptors": key("live", optionalInt, undefined, "Maximum number of connections."),
  "Swarm.ResourceMgr.Allowlist": key(
    "start",
    texts,
    undefined,
    "Addresses and ranges whose peers may connect beyond all limits: `/ip4/192.0.2.7`, `/ip4/10.0.0.0/ipcidr/8`, each with `/p2p/ID` for one peer.",
  ),
  "AutoNAT.ServiceMode": key(
    "live",
    natMode,
    undefined,
    "`enabled` or `disabled`: check for other nodes whether they are reachable. Enabled by default.",
  ),
  "AutoNAT.Throttle": key(
    "live",
    throttle,
    undefined,
    "`{GlobalLimit, PeerLimit, Interval}`: how many of these checks are made per interval, in total and per peer; 0 is no limit.",
  ),
  "Pubsub.Router": key("start", text, "", "`gossipsub` (default) or `floodsub`."),
  "Pubsub.DisableSigning": key(
    "start",
    bool,
    false,
    "Messages have no signatures: none is added, and messages with a signature are dropped.",
  ),
  "Peering.Peers": key("live", list(peerAddresses), null, "Peers to which a connection is maintained, `{ID, Addrs}`."),
  "DNS.Resolvers": key(
    "live",
    map(text),
    {},
    "Domain with a dot at its end to the `https://` URL of its resolver, or empty for the resolver of the system.",
  ),
  ...autoConfKeys,
  "Migration.DownloadSources": key("none", texts, [], "Without effect."),
  "Migration.Keep": key("none", text, "", "Without effect."),
  "Provider.Strategy": key("none", text, "", "Not used."),
  "Reprovider.Interval": key(
    "live",
    durationText,
    "12h",
    "How often stored content is announced; `0` is never. Empty is 12h, or 22h when the section `Provide` exists, as in repos of Kubo.",
  ),
  "Reprovider.Strategy": key(
    "live",
    text,
    "all",
    "`all`, `pinned`, `roots`, `mfs` and others; see `Provide.Strategy`. Empty is all.",
  ),
  "Experimental.FilestoreEnabled": experiment(
    "start",
    "Blocks may stay in the files that they come from; read when the node starts.",
  ),
  "Experimental.UrlstoreEnabled": experiment(
    "start",
    "Blocks may stay at the URL that they come from; read when the node starts.",
  ),
  "Experimental.ShardingEnabled": experiment("live", "Spread every directory over many blocks."),
  "Experimental.GraphsyncEnabled": experiment("none", "Without effect."),
  "Experimental.Libp2pStreamMounting": experiment("live", "Enables the commands `p2p/*`; read at each call."),
  "Experimental.P2pHttpProxy": experiment("live", "A proxy to the HTTP services of peers on the gateway."),
  "Experimental.StrategicProviding": experiment("live", "Announce nothing except on request."),
  "Experimental.AcceleratedDHTClient": experiment("live", "Announce in batches; `stats/provide` reports on it."),
  ...importKeys,
  ...provideKeys,
  ...networkKeys,
  "Plugins.Plugins": key("none", map(plugin), null, "Without effect."),
  "Pinning.RemoteServices": key(
    "live",
    map(remoteService),
    {},
    "Pinning services by name. The API never shows their keys.",
  ),
  "Internal.MFSNoFlushLimit": key(
    "start",
    optionalInt,
    undefined,
    "Number of `files` calls without `flush` at the level 0.43 after which such calls fail until something is flushed; null is 256, 0 is no limit.",
  ),
} as const satisfies Readonly<Record<string, ConfigKey>>;

export type ConfigPath = keyof typeof configKeys;

/** Sections that are read when the network is opened. */
const NETWORK =
  /^(Addresses\.(Swarm|Announce|AppendAnnounce|NoAnnounce)|AutoNAT|Discovery|HTTPRetrieval|Pubsub|Routing|Swarm)\b/;

/** Whether a key is read when the network is opened. */
export const isOfNetwork = (path: ConfigPath): boolean => NETWORK.test(path);

export type ConfigValue<P extends ConfigPath> = ValueOf<(typeof configKeys)[P]["kind"]>;

/** A whole document with every known key. */
export type Document = JsonObject;

const allKeys = Object.entries(configKeys) as readonly [path: string, key: ConfigKey][];

/** Returns the kind of all keys below `prefix`, which is empty or ends in a dot. */
function section(prefix: string): Kind<Document> {
  const fields: Record<string, FieldKind> = {};
  for (const [path, { kind, init }] of allKeys) {
    if (!path.startsWith(prefix)) continue;
    const [name = "", ...below] = path.slice(prefix.length).split(".");
    if (below.length === 0) fields[name] = { kind, optional: init === undefined };
    else fields[name] ??= { kind: section(`${prefix}${name}.`), optional: laterSections.has(`${prefix}${name}`) };
  }
  const path = prefix.slice(0, -1);
  const name = structNames.get(path) ?? (path.split(".").at(-1) as string);
  return struct(name, fields, name === "" ? { type: anonymous(fields) } : {});
}

function anonymous(fields: Readonly<Record<string, FieldKind>>): string {
  const members = Object.entries(fields).map(([name, { kind }]) => `${name} ${kind.type} "json:\\",omitempty\\""`);
  return `struct { ${members.join("; ")} }`;
}

const whole = section("");

/**
 * Decodes every known key and drops unknown ones.
 * @throws NodeError `failure to decode config: …`
 */
export function decodeConfig(value: unknown): Document {
  try {
    return whole.decode(value, { struct: "Config", path: [] }, whole.zero);
  } catch (error) {
    throw failure("CONFIG_INVALID", { reason: `failure to decode config: ${(error as Error).message}` }, error);
  }
}

/** Returns the document of a new repo without the identity; keys are in order. */
export function initialConfig(): Document {
  let config = whole.zero;
  for (const [path, { init }] of allKeys) if (init !== undefined) config = setAt(config, path, init);
  return config;
}

const known = new Map<ConfigPath, readonly string[]>();

/**
 * Returns the names in a path. Paths are split once, because some keys are looked up for each
 * request.
 */
function namesAlong(path: ConfigPath): readonly string[] {
  let names = known.get(path);
  if (names === undefined) known.set(path, (names = path.split(".")));
  return names;
}

/** Returns a value of a decoded document. Missing keys have their zero value. */
export function valueAt<P extends ConfigPath>(document: Document, path: P): ConfigValue<P> {
  let value: unknown = document;
  for (const name of namesAlong(path)) value = isObject(value) ? value[name] : undefined;
  return (value ?? configKeys[path].kind.zero) as ConfigValue<P>;
}
