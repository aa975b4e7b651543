/** Profiles: named changes of the configuration. */
import { createServer } from "node:net";
import { failure } from "../../util/errors.ts";
import { AUTO } from "./auto_values.ts";
import {
  badgerSpec,
  bootstrapPeers,
  defaultAddresses,
  defaultSpec,
  flatfsSpec,
  pebbleSpec,
  privateRanges,
} from "./defaults.ts";
import { setAt } from "./json.ts";
import { type ConfigPath, type ConfigValue, type Document, valueAt } from "./schema.ts";

type Change<T> = { readonly to: T } | { readonly by: (before: T) => T | Promise<T> };

export interface Profile {
  readonly help: string;
  /** New values by path, or functions of the old values. */
  readonly changes: { readonly [P in ConfigPath]?: Change<ConfigValue<P>> };
}

const to = <T>(value: T) => ({ to: value });

type Texts = readonly string[] | null;

/** Appends entries and removes duplicates. */
const joined = (more: readonly string[]) => ({ by: (before: Texts) => [...new Set([...(before ?? []), ...more])] });
const without = (less: readonly string[]) => ({
  by: (before: Texts) => [...new Set(before)].filter((each) => !less.includes(each)),
});

const datastore = (spec: Readonly<Record<string, unknown>>, help: string): Profile => ({
  help: `${help} Only for a new repo.`,
  changes: { "Datastore.Spec": to(spec) },
});

const unixfsV0: Profile = {
  help: "Import settings of 2015: CIDs of version 0, chunks of 256 KiB, 174 links (IPIP-499).",
  changes: {
    "Import.CidVersion": to(0),
    "Import.UnixFSRawLeaves": to(false),
    "Import.UnixFSChunker": to("size-262144"),
    "Import.HashFunction": to("sha2-256"),
    "Import.UnixFSFileMaxLinks": to(174),
    "Import.UnixFSDirectoryMaxLinks": to(0),
    "Import.UnixFSHAMTDirectoryMaxFanout": to(256),
    "Import.UnixFSHAMTDirectorySizeThreshold": to("256KiB"),
    "Import.UnixFSHAMTDirectorySizeEstimation": to("links"),
    "Import.UnixFSDAGLayout": to("balanced"),
  },
};

export const profiles: Readonly<Record<string, Profile>> = {
  local: {
    help: "Uses this machine only: the swarm on one loopback TCP address, no gateway, no bootstrap, no discovery.",
    changes: {
      "Addresses.Swarm": to(["/ip4/127.0.0.1/tcp/0"]),
      "Addresses.Gateway": to(null),
      "Swarm.DisableNatPortMap": to(true),
      Bootstrap: to([]),
      "Discovery.MDNS.Enabled": to(false),
    },
  },
  server: {
    help: "For machines with a public address: no local discovery, and no connections to private networks.",
    changes: {
      "Addresses.NoAnnounce": joined(privateRanges),
      "Swarm.AddrFilters": joined(privateRanges),
      "Discovery.MDNS.Enabled": to(false),
      "Swarm.DisableNatPortMap": to(true),
    },
  },
  "local-discovery": {
    help: "Undoes `server`: searches for peers in the local network.",
    changes: {
      "Addresses.NoAnnounce": without(privateRanges),
      "Swarm.AddrFilters": without(privateRanges),
      "Discovery.MDNS.Enabled": to(true),
      "Swarm.DisableNatPortMap": to(false),
    },
  },
  test: {
    help: "For tests: loopback and ports of their own, no bootstrap, no discovery.",
    changes: {
      "Addresses.API": to("/ip4/127.0.0.1/tcp/0"),
      "Addresses.Gateway": to("/ip4/127.0.0.1/tcp/0"),
      "Addresses.Swarm": to(["/ip4/127.0.0.1/tcp/0"]),
      "Swarm.DisableNatPortMap": to(true),
      Bootstrap: to([]),
      "Discovery.MDNS.Enabled": to(false),
    },
  },
  "default-networking": {
    help: "Undoes `test` and `local`: addresses, bootstrap and discovery as in a new repo.",
    changes: {
      "Addresses.Swarm": to(defaultAddresses.Swarm),
      "Addresses.Announce": to([]),
      "Addresses.NoAnnounce": to([]),
      "Addresses.API": to(defaultAddresses.API),
      "Addresses.Gateway": to(defaultAddresses.Gateway),
      Bootstrap: joined(bootstrapPeers),
      "Swarm.DisableNatPortMap": to(false),
      "Discovery.MDNS.Enabled": to(true),
    },
  },
  "quic-v1": {
    help: "Standard QUIC (version 1) instead of the draft of version 0.9, at the same addresses.",
    changes: {
      "Addresses.Swarm": {
        by: (before) => [...new Set((before ?? []).map((each) => each.replace(/\/quic$/, "/quic-v1")))],
      },
    },
  },
  "default-datastore": datastore(defaultSpec, "Blocks in segment files, metadata in LMDB."),
  flatfs: datastore(flatfsSpec, "A file for each block, as other nodes store them."),
  "flatfs-measure": datastore(flatfsSpec, "Like `flatfs`; the node has its own metrics."),
  badgerds: datastore(badgerSpec, "Blocks in Badger, as other nodes store them: this node refuses it."),
  "badgerds-measure": datastore(badgerSpec, "Like `badgerds`: this node refuses it."),
  pebbleds: datastore(
    pebbleSpec,
    "Everything in Pebble: this node refuses it, but opens such a repo that Kubo has made.",
  ),
  "pebbleds-measure": datastore(pebbleSpec, "Like `pebbleds`: this node refuses it."),
  lowpower: {
    help: "Less work: a routing client only, few connections, no repeated announcements.",
    changes: {
      "Routing.Type": to("dhtclient"),
      "AutoNAT.ServiceMode": to("disabled"),
      "Reprovider.Interval": to("0"),
      "Swarm.ConnMgr.LowWater": to(20),
      "Swarm.ConnMgr.HighWater": to(40),
      "Swarm.ConnMgr.GracePeriod": to("1m0s"),
    },
  },
  "announce-off": {
    help: "Announces nothing: for nodes whose peers are all named in `Peering.Peers`.",
    changes: { "Provide.Enabled": to(false), "Provide.DHT.Interval": to("0s") },
  },
  "announce-on": {
    help: "Undoes `announce-off`.",
    changes: { "Provide.Enabled": to(true), "Provide.DHT.Interval": to("22h0m0s") },
  },
  "autoconf-on": {
    help: "Sets bootstrap peers, resolvers and delegated routers to `auto`, whose meaning is fetched from `AutoConf.URL`.",
    changes: {
      Bootstrap: to([AUTO]),
      "DNS.Resolvers": to({ ".": AUTO }),
      "Routing.DelegatedRouters": to([AUTO]),
      "Ipns.DelegatedPublishers": to([AUTO]),
      "AutoConf.Enabled": to(true),
    },
  },
  "autoconf-off": {
    help: "Clears bootstrap peers, resolvers and delegated routers, so that they can be set by hand.",
    changes: {
      Bootstrap: to(null),
      "DNS.Resolvers": to(null),
      "Routing.DelegatedRouters": to(null),
      "Ipns.DelegatedPublishers": to(null),
      "AutoConf.Enabled": to(false),
    },
  },
  "unixfs-v0-2015": unixfsV0,
  "legacy-cid-v0": unixfsV0,
  "unixfs-v1-2025": {
    help: "Import settings of 2025: CIDs of version 1, raw leaves, chunks of 1 MiB, 1,024 links (IPIP-499).",
    changes: {
      ...unixfsV0.changes,
      "Import.CidVersion": to(1),
      "Import.UnixFSRawLeaves": to(true),
      "Import.UnixFSChunker": to("size-1048576"),
      "Import.UnixFSFileMaxLinks": to(1024),
      "Import.UnixFSHAMTDirectorySizeEstimation": to("block"),
    },
  },
  randomports: {
    help: "The swarm on a free TCP port.",
    changes: {
      "Addresses.Swarm": {
        async by() {
          const port = await freePort();
          return [`/ip4/0.0.0.0/tcp/${port}`, `/ip6/::/tcp/${port}`];
        },
      },
    },
  },
};

export const isProfile = (name: string): boolean => Object.hasOwn(profiles, name);

/**
 * Returns a profile.
 * @throws NodeError `x is not a profile`
 */
export function profileNamed(name: string): Profile {
  const found = isProfile(name) ? profiles[name] : undefined;
  if (found === undefined) throw failure("CONFIG_PROFILE_UNKNOWN", { name });
  return found;
}

export async function applyProfile(document: Document, { changes }: Profile): Promise<Document> {
  let changed = document;
  for (const path of Object.keys(changes) as ConfigPath[]) {
    const change = changes[path] as Change<unknown>;
    changed = setAt(changed, path, "to" in change ? change.to : await change.by(valueAt(document, path)));
  }
  return changed;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string")
    throw failure("LISTEN_FAILED", { reason: "there is no free port" });
  return address.port;
}
