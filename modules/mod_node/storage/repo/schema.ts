/**
 * Every key of the configuration: its kind, its value in a new repo, its meaning. The document of a new repo, the
 * decoder and the reference page are derived from this table.
 */
import { NodeError } from "../../util/errors.ts";
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

/** In the order of a new document. */
export const configKeys = {
  "Identity.PeerID": key("start", text, "", "Peer id of the node; it must fit the key."),
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
    "Size at which garbage is collected where the node does so by itself; no limit.",
  ),
  "Datastore.StorageGCWatermark": key(
    "live",
    int64,
    90,
    "Percent of StorageMax from which garbage is collected; 0 is 90.",
  ),
  "Datastore.GCPeriod": key("live", durationText, "1h", "How often the size is looked at."),
  "Datastore.Type": key("start", text, undefined, "Of former versions: a repo with it is not opened."),
  "Datastore.Path": key("start", text, undefined, "Of former versions: a repo with it is not opened."),
  "Datastore.NoSync": key("none", bool, undefined, "Of former versions, without effect."),
  "Datastore.Params": key("none", anything, undefined, "Of former versions, without effect."),
  "Datastore.Spec": key(
    "start",
    map(anything, "object"),
    defaultSpec,
    "Where blocks and metadata are kept; it must agree with the file `datastore_spec`.",
  ),
  "Datastore.HashOnRead": key("live", bool, false, "Check every block that is read against its CID."),
  "Datastore.BloomFilterSize": key("none", int, 0, "Read and kept; the block store has an index of its own."),
  "Addresses.Swarm": key("live", texts, defaultAddresses.Swarm, "Addresses on which the node listens for peers."),
  "Addresses.Announce": key("live", texts, [], "If there are any, exactly these are announced."),
  "Addresses.AppendAnnounce": key(
    "live",
    texts,
    undefined,
    "Addresses that are announced beside the others, as that of a gateway: `/dns/gateway.example/tcp/443/tls/http`.",
  ),
  "Addresses.NoAnnounce": key(
    "live",
    texts,
    [],
    "Addresses, and masks such as `/ip4/10.0.0.0/ipcidr/8`, that are never announced.",
  ),
  "Addresses.API": key("live", strings, defaultAddresses.API, "Where the RPC API listens."),
  "Addresses.Gateway": key(
    "live",
    strings,
    defaultAddresses.Gateway,
    "Where the gateway listens, with the read-only commands; empty for nowhere.",
  ),
  ...mountKeys,
  "Discovery.MDNS.Enabled": key("live", bool, true, "Find peers on the local network."),
  "Discovery.MDNS.Interval": key("live", int, 10, "Seconds between two looks; 0 is 5."),
  "Routing.Type": key(
    "live",
    text,
    "dht",
    "`dht`, `dhtclient`, `dhtserver` or `none`; with routers over HTTP `auto`, `autoclient`, `delegated` or `custom`. Empty is `auto`, which without such routers is `dht`. With a DHT instead of none, and none instead of one, it counts from the next start.",
  ),
  "Routing.DelegatedRouters": key(
    "live",
    texts,
    undefined,
    "URLs of routers over HTTP that are asked with `auto`, `autoclient` and `delegated`: `https://HOST`, or `https://HOST/routing/v1/providers` (`peers`, `ipns`) for that alone.",
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
    "How often names are published anew, from 1m to 24h, or any time with `DEBUG=1`; empty is 4h.",
  ),
  "Ipns.RecordLifetime": key("live", durationText, "", "Lifetime of records that are published anew; empty is 24h."),
  "Ipns.ResolveCacheSize": key("live", int, 128, "Names that are remembered; 0 is 128."),
  "Ipns.DelegatedPublishers": key(
    "live",
    texts,
    undefined,
    "URLs of routers over HTTP that names are published to as well, with `auto`, `autoclient` and `delegated`.",
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
    "Further headers of the gateway's answers. Those of CORS that list methods and headers are joined with what it needs.",
  ),
  "Gateway.RootRedirect": key("live", text, "", "Where `/` of the gateway leads; empty is nowhere."),
  "Gateway.Writable": key("live", bool, false, "POST, PUT and DELETE on the gateway make new content."),
  "Gateway.PathPrefixes": key("none", texts, [], "Values allowed in X-Ipfs-Path-Prefix (deprecated)."),
  "Gateway.APICommands": key("none", texts, [], "Not used."),
  "Gateway.NoFetch": key("live", bool, false, "The gateway serves what is on this machine only."),
  "Gateway.NoDNSLink": key("live", bool, false, "Do not look for a DNSLink of the Host header."),
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
    "False: only what a client can check by itself, which are raw blocks, archives (CAR) and records of names.",
  ),
  "Gateway.ExposeRoutingAPI": key(
    "live",
    flag,
    undefined,
    "False: nobody asks this node at `/routing/v1` of the gateway who has a block, where a peer is, or for records.",
  ),
  "Gateway.DisableHTMLErrors": key("live", flag, undefined, "True: browsers get a line of text for an error, too."),
  "Gateway.RetrievalTimeout": key(
    "live",
    durationText,
    undefined,
    "How long an answer of the gateway waits for its next bytes; empty is 30s.",
  ),
  "Gateway.MaxRequestDuration": key(
    "live",
    durationText,
    undefined,
    "How long an answer of the gateway may take in all; empty is 1h.",
  ),
  "Gateway.MaxConcurrentRequests": key(
    "live",
    count,
    undefined,
    "Requests that the gateway answers at a time; null is 4096, 0 any number.",
  ),
  "Gateway.MaxRangeRequestFileSize": key(
    "live",
    count,
    undefined,
    "Bytes of the largest file of which the gateway serves ranges; null and 0 are any.",
  ),
  ...retrievalKeys,
  "API.HTTPHeaders": key(
    "live",
    headers,
    {},
    "Headers of the RPC API's answers. Access-Control-Allow-Origin, -Methods and -Credentials steer CORS.",
  ),
  "API.Authorizations": key(
    "live",
    map(authScope),
    undefined,
    "Name to `{AuthSecret, AllowedPaths}`: secrets without which the RPC API answers nobody, as Kubo has them.",
  ),
  "Swarm.AddrFilters": key("live", texts, null, "Masks of addresses that are neither dialled nor let in."),
  "Swarm.DisableBandwidthMetrics": key("live", bool, false, "Do not count bytes; `stats/bw` fails then."),
  "Swarm.DisableNatPortMap": key("live", bool, false, "Do not ask the router for a port."),
  "Swarm.DisableRelay": key("live", bool, undefined, "Deprecated; `Swarm.Transports.Network.Relay` goes before it."),
  "Swarm.EnableRelayHop": key("live", bool, false, "Be a relay for others."),
  "Swarm.EnableAutoRelay": key("live", bool, false, "Be reached through a relay that is found among the peers."),
  "Swarm.Transports.Network.QUIC": key("live", flag, undefined, "QUIC; on by default, off in a private network."),
  "Swarm.Transports.Network.TCP": key("live", flag, undefined, "TCP; on by default."),
  "Swarm.Transports.Network.Websocket": key("live", flag, undefined, "WebSockets; on by default."),
  "Swarm.Transports.Network.Relay": key("live", flag, undefined, "Connections through relays; on by default."),
  "Swarm.Transports.Security.TLS": key("live", priority, undefined, "300 by default."),
  "Swarm.Transports.Security.SECIO": key("none", priority, undefined, "No longer there; a value is logged."),
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
  "Swarm.ConnMgr.LowWater": key("live", int, 600, "Connections that are left when some are closed."),
  "Swarm.ConnMgr.HighWater": key("live", int, 900, "Connections from which on some are closed."),
  "Swarm.ConnMgr.GracePeriod": key("live", durationText, "20s", "How long a new connection is spared."),
  "Swarm.ResourceMgr.Enabled": key("live", flag, undefined, "False: its limits do not hold, and are not shown."),
  "Swarm.ResourceMgr.MaxMemory": key("live", optionalText, undefined, "So many connections as it has MiB: `4GiB`."),
  "Swarm.ResourceMgr.MaxFileDescriptors": key("live", optionalInt, undefined, "So many connections at most."),
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
    "`enabled` or `disabled`: tell others whether they can be reached. Enabled by default.",
  ),
  "AutoNAT.Throttle": key(
    "live",
    throttle,
    undefined,
    "`{GlobalLimit, PeerLimit, Interval}`: how many others are told; 0 is no limit.",
  ),
  "Pubsub.Router": key("start", text, "", "`gossipsub` (default) or `floodsub`."),
  "Pubsub.DisableSigning": key(
    "start",
    bool,
    false,
    "Messages without signatures: none is added, and what carries one is dropped.",
  ),
  "Peering.Peers": key("live", list(peerAddresses), null, "Peers to which a connection is kept, `{ID, Addrs}`."),
  "DNS.Resolvers": key(
    "live",
    map(text),
    {},
    "Domain with a dot at its end to the `https://` URL of its resolver, or to nothing for the system's.",
  ),
  ...autoConfKeys,
  "Migration.DownloadSources": key("none", texts, [], "Read and kept, without effect."),
  "Migration.Keep": key("none", text, "", "Read and kept, without effect."),
  "Provider.Strategy": key("none", text, "", "Not used."),
  "Reprovider.Interval": key(
    "live",
    durationText,
    "12h",
    "How often it is announced what is here; `0` is never. Empty is 12h, and 22h where there is a section `Provide`, as in repos of Kubo.",
  ),
  "Reprovider.Strategy": key(
    "live",
    text,
    "all",
    "`all`, `pinned`, `roots`, `mfs` and others; see `Provide.Strategy`. Empty is all.",
  ),
  "Experimental.FilestoreEnabled": experiment(
    "start",
    "Blocks that stay in the files they come from; looked at when the node starts.",
  ),
  "Experimental.UrlstoreEnabled": experiment(
    "start",
    "Blocks that stay at the URL they come from; looked at when the node starts.",
  ),
  "Experimental.ShardingEnabled": experiment("live", "Spread every directory over many blocks."),
  "Experimental.GraphsyncEnabled": experiment("none", "Read and kept, without effect."),
  "Experimental.Libp2pStreamMounting": experiment("live", "The commands `p2p/*`; looked at on each call."),
  "Experimental.P2pHttpProxy": experiment("live", "A proxy to the HTTP services of peers on the gateway."),
  "Experimental.StrategicProviding": experiment("live", "Announce nothing unless told to."),
  "Experimental.AcceleratedDHTClient": experiment("live", "Announce in batches; `stats/provide` tells about it."),
  ...importKeys,
  ...provideKeys,
  ...networkKeys,
  "Plugins.Plugins": key("none", map(plugin), null, "Read and kept, without effect."),
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
    "Calls of `files` without `flush` at the level 0.43 after which such calls fail until something is flushed; null is 256, 0 any number.",
  ),
} as const satisfies Readonly<Record<string, ConfigKey>>;

export type ConfigPath = keyof typeof configKeys;

/** Sections that the network reads when it is opened. */
const NETWORK =
  /^(Addresses\.(Swarm|Announce|AppendAnnounce|NoAnnounce)|AutoNAT|Discovery|HTTPRetrieval|Pubsub|Routing|Swarm)\b/;

/** Whether a key is read when the network is opened. */
export const isOfNetwork = (path: ConfigPath): boolean => NETWORK.test(path);

export type ConfigValue<P extends ConfigPath> = ValueOf<(typeof configKeys)[P]["kind"]>;

/** A whole document with every known key. */
export type Document = JsonObject;

const allKeys = Object.entries(configKeys) as readonly [path: string, key: ConfigKey][];

/** The kind of all keys below `prefix`, which is empty or ends in a dot. */
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

/** Every known key with its kind; unknown keys are dropped. @throws NodeError `failure to decode config: …` */
export function decodeConfig(value: unknown): Document {
  try {
    return whole.decode(value, { struct: "Config", path: [] }, whole.zero);
  } catch (error) {
    throw new NodeError(`failure to decode config: ${(error as Error).message}`, { cause: error });
  }
}

/** The document of a new repo without the identity; keys in order. */
export function initialConfig(): Document {
  let config = whole.zero;
  for (const [path, { init }] of allKeys) if (init !== undefined) config = setAt(config, path, init);
  return config;
}

const known = new Map<ConfigPath, readonly string[]>();

/** The names in a path: split once, as some keys are looked up for each request. */
function namesAlong(path: ConfigPath): readonly string[] {
  let names = known.get(path);
  if (names === undefined) known.set(path, (names = path.split(".")));
  return names;
}

/** The value of a decoded document; keys that were left out are zero. */
export function valueAt<P extends ConfigPath>(document: Document, path: P): ConfigValue<P> {
  let value: unknown = document;
  for (const name of namesAlong(path)) value = isObject(value) ? value[name] : undefined;
  return (value ?? configKeys[path].kind.zero) as ConfigValue<P>;
}
