/** A node that announces its keys to a simulated DHT. */
import { kadIdOf } from "#node/network/kad/sweep/keyspace.ts";
import type { SweepSettings } from "#node/network/kad/sweep/settings.ts";
import { Sweeper, type SweeperDeps } from "#node/network/kad/sweep/sweeper.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SimulatedDht, type SimulatedPeer } from "#test/support/network/simulated_dht.ts";
import { VirtualClock } from "#test/support/virtual_clock.ts";

export const minute = 60_000;
export const hour = 60 * minute;

export function multihash(number: number): Uint8Array {
  const digest = kadIdOf(Buffer.from(`key ${number}`));
  return Buffer.concat([Buffer.from([0x12, 32]), digest]);
}

export const multihashes = (count: number, first = 0): readonly Uint8Array[] =>
  Array.from({ length: count }, (_, at) => multihash(first + at));

export const settings: SweepSettings = {
  interval: 22 * hour,
  resumes: true,
  workers: { max: 16, dedicated: { periodic: 2, burst: 1 } },
  connections: 20,
  batchSize: 16_384,
  offlineAfter: 2 * hour,
  sendTimeout: 10_000,
};

export interface World {
  readonly clock: VirtualClock;
  readonly dht: SimulatedDht;
  readonly metadata: ReturnType<typeof memoryMetadata>;
  keys: readonly Uint8Array[];
  isOnline: boolean;
  readonly warnings: string[];
  sweeper(changed?: Partial<SweepSettings>, deps?: Partial<SweeperDeps<SimulatedPeer>>): Sweeper<SimulatedPeer>;
}

export function worldOf({ peers, keys }: { readonly peers: number; readonly keys: number }): World {
  const clock = new VirtualClock();
  const dht = new SimulatedDht({ peers, clock, keepsRecords: true });
  const metadata = memoryMetadata();
  const warnings: string[] = [];
  const world: World = {
    clock,
    dht,
    metadata,
    keys: multihashes(keys),
    isOnline: true,
    warnings,
    sweeper: (changed = {}, deps = {}) =>
      new Sweeper({
        metadata,
        hostMetadata: metadata,
        clock,
        log: { write: (_system, _level, text) => void warnings.push(text) },
        settings: () => ({ ...settings, ...changed }),
        network: () => (world.isOnline ? dht : undefined),
        source: () => ({
          name: "all",
          async *keys() {
            yield* world.keys;
          },
        }),
        ...deps,
      }),
  };
  return world;
}

/**
 * The peers that received each key, by the text of its multihash; a peer that received it twice is
 * listed twice.
 */
export function holders({ records }: SimulatedDht): Map<string, SimulatedPeer[]> {
  const found = new Map<string, SimulatedPeer[]>();
  for (const [peer, keys] of records) {
    for (const key of keys) found.set(key, [...(found.get(key) ?? []), peer]);
  }
  return found;
}

export const textOf = (key: Uint8Array): string => Buffer.from(key).toString("latin1");
