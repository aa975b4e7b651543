/** Profiles: named changes of the configuration. */
import { createServer } from "node:net";
import { NodeError } from "../../util/errors.ts";
import { badgerSpec, bootstrapPeers, defaultAddresses, defaultSpec, flatfsSpec, privateRanges } from "./defaults.ts";
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

/** In their order, each once. */
const joined = (more: readonly string[]) => ({ by: (before: Texts) => [...new Set([...(before ?? []), ...more])] });
const without = (less: readonly string[]) => ({
  by: (before: Texts) => [...new Set(before)].filter((each) => !less.includes(each)),
});

const datastore = (spec: Readonly<Record<string, unknown>>, help: string): Profile => ({
  help: `${help} Only for a repo that is being made.`,
  changes: { "Datastore.Spec": to(spec) },
});

export const profiles: Readonly<Record<string, Profile>> = {
  local: {
    help: "Keeps to this machine: the swarm on one loopback TCP address, no gateway, no bootstrap, no discovery.",
    changes: {
      "Addresses.Swarm": to(["/ip4/127.0.0.1/tcp/0"]),
      "Addresses.Gateway": to(null),
      "Swarm.DisableNatPortMap": to(true),
      Bootstrap: to([]),
      "Discovery.MDNS.Enabled": to(false),
    },
  },
  server: {
    help: "For machines with a public address: no local discovery, nothing to private networks.",
    changes: {
      "Addresses.NoAnnounce": joined(privateRanges),
      "Swarm.AddrFilters": joined(privateRanges),
      "Discovery.MDNS.Enabled": to(false),
      "Swarm.DisableNatPortMap": to(true),
    },
  },
  "local-discovery": {
    help: "Undoes `server`: peers are looked for in the local network.",
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
  "default-datastore": datastore(defaultSpec, "Blocks in segment files, metadata in LMDB."),
  flatfs: datastore(flatfsSpec, "A file for each block, as other nodes keep them."),
  badgerds: datastore(badgerSpec, "Blocks in Badger, as other nodes keep them."),
  lowpower: {
    help: "Less work: a routing client only, few connections, nothing announced again.",
    changes: {
      "Routing.Type": to("dhtclient"),
      "AutoNAT.ServiceMode": to("disabled"),
      "Reprovider.Interval": to("0"),
      "Swarm.ConnMgr.LowWater": to(20),
      "Swarm.ConnMgr.HighWater": to(40),
      "Swarm.ConnMgr.GracePeriod": to("1m0s"),
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

/** @throws NodeError `x is not a profile` */
export function profileNamed(name: string): Profile {
  const found = isProfile(name) ? profiles[name] : undefined;
  if (found === undefined) throw new NodeError(`${name} is not a profile`);
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
  if (address === null || typeof address === "string") throw new NodeError("there is no free port");
  return address.port;
}
