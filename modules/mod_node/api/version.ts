/** The version of the node and of its dependencies. */
import type { LowLevelNode } from "../node/low_level_node.ts";
import { NodeError } from "../util/errors.ts";
import { installedPackages, ownPackage } from "../util/packages.ts";
import { type VersionFacts, versionFacts } from "../util/version.ts";
import type { CallOptions } from "./common.ts";

/** An installed package. */
export interface VersionDependency {
  /** Name of the package. */
  readonly path: string;
  readonly version: string;
  readonly replacedBy: string;
  /** Checksum from a lock file; "" if none lists the package. */
  readonly sum: string;
}

export interface VersionCheckOptions extends CallOptions {
  /** Percentage of the peers that must run a greater version; 5 by default. */
  readonly minPercent?: number | undefined;
}

export interface VersionCheck {
  /**
   * Whether at least `minPercent` of the peers run a greater version; a few peers may only be
   * testing one.
   */
  readonly updateAvailable: boolean;
  readonly runningVersion: string;
  /** The greatest version that was seen, including that of this node. */
  readonly greatestVersion: string;
  /** Number of peers in the routing table that run this program, including this node. */
  readonly peersSampled: number;
  readonly withGreaterVersion: number;
}

export interface VersionApi {
  readonly version: {
    (options?: CallOptions): Promise<VersionFacts>;
    /**
     * Yields the installed packages: modhost itself, then its dependencies, by name and version.
     */
    deps(options?: CallOptions): AsyncIterable<VersionDependency>;
    /**
     * Resolves to whether peers in the routing table run a greater version of this program. Sends
     * no requests.
     *
     * @throws NodeError while the node is offline, and without a DHT
     */
    check(options?: VersionCheckOptions): Promise<VersionCheck>;
  };
  /** Resolves to a few sentences that say how to update. */
  update(options?: CallOptions): Promise<string>;
}

async function* deps(): AsyncGenerator<VersionDependency> {
  for (const { name: path, version, integrity: sum } of await installedPackages()) {
    yield { path, version, replacedBy: "", sum };
  }
}

async function check(node: LowLevelNode, { minPercent = 5 }: VersionCheckOptions = {}): Promise<VersionCheck> {
  const { routing, swarm } = await node.network();
  if (routing.dht === undefined)
    throw new NodeError(
      "DHT_MISSING",
      "could not perform version check due to missing or incompatible DHT configuration",
    );
  const { name, version: running } = await ownPackage();
  const { default: compare } = await import("semver/functions/compare.js");
  const { default: valid } = await import("semver/functions/valid.js");
  const known = [routing.dht.wan, routing.dht.lan].flatMap((table) => table.buckets().flatMap(({ peers }) => peers));
  const ids = new Map(known.map(({ id }) => [id.toString(), id]));
  const agents = await Promise.all(ids.values().map(async (id) => (await swarm.peerInfo(id)).agentVersion));
  const others = agents.flatMap((agent) => valid(agent.startsWith(`${name}/`) ? agent.split("/")[1] : undefined) ?? []);
  const greater = others.filter((version) => compare(version, running) > 0);
  const peersSampled = others.length + 1;
  return {
    updateAvailable: greater.length > 0 && (100 * greater.length) / peersSampled >= minPercent,
    runningVersion: running,
    greatestVersion: [running, ...greater].sort(compare).at(-1) ?? running,
    peersSampled,
    withGreaterVersion: greater.length,
  };
}

export function versionApi(node: LowLevelNode): VersionApi {
  return {
    version: Object.assign(async () => versionFacts(), {
      deps,
      check: (options?: VersionCheckOptions) => check(node, options),
    }),
    async update() {
      const { name, version: own } = await ownPackage();
      const { version, repo, golang } = versionFacts();
      return (
        `${name} ${own}: API ${version}, repo ${repo}, ${golang}\n` +
        `Updates come through npm: \`npm view ${name} versions\` lists them, \`npm install ${name}@VERSION\` installs ` +
        "one (with --global where it was installed so). The host runs it from its next start on.\n"
      );
    },
  };
}
