/**
 * Starts hosts on one store, and one with a store of its own. Each is a process, started as a user
 * would.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { cpuSeconds, forgetPeak, peakBytes } from "#test/bench/node/usage.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

/** Hosts that share a work. */
export interface HostGroup {
  readonly name: string;
  readonly servers: readonly RpcServer[];
}

/** A program and its arguments. */
export interface Program {
  readonly launcher: string;
}

/** The hosts have one process each, no network, and metrics that count their requests. */
const env: NodeJS.ProcessEnv = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_openmetrics",
  MODHOST_NODE_OFFLINE: "true",
  // A busy machine needs more time.
  MODHOST_LOAD_TIMEOUT: "300",
};

/**
 * Makes and uses the folder `<folder>/<name>`. Without `store`, the host has a store of its own.
 * Also returns the folder of its cache.
 */
export async function startHost(
  { launcher }: Program,
  folder: string,
  name: string,
  store?: StoreSettings,
): Promise<RpcServer> {
  const own = join(folder, name);
  await mkdir(own, { recursive: true });
  const shared = store && { MODHOST_NODE_STORE: JSON.stringify({ ...store, cache_path: cacheOf(folder, name) }) };
  return RpcServer.start({ folder: own, launcher, env: { ...env, ...shared } });
}

export const cacheOf = (folder: string, name: string): string => join(folder, name, "cache");

/** Returns the seconds of CPU time of all their processes. */
export const cpuOf = (servers: readonly RpcServer[]): number =>
  servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);

/** Returns the highest peak memory of any of them since `forgetPeaks` in bytes. */
export const peakOf = (servers: readonly RpcServer[]): number => Math.max(...servers.map(({ pid }) => peakBytes(pid)));

export const forgetPeaks = (servers: readonly RpcServer[]): void => {
  for (const { pid } of servers) forgetPeak(pid);
};

/** Returns the number of requests that they have sent to the object store. */
export async function requestsOf(servers: readonly RpcServer[]): Promise<number> {
  const counts = await Promise.all(
    servers.map(async ({ url }) => {
      const response = await fetch(`${url}/metrics`);
      if (!response.ok) throw new Error(`/metrics: status ${response.status}`);
      const lines = (await response.text()).matchAll(/^modhost_node_store_requests_total\{.*\} (\d+)/gm);
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
