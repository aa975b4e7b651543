/** Hosts on one store, and one with a store of its own, each a process as its user starts it. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { cpuSeconds, forgetPeak, peakBytes } from "#test/bench/node/usage.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

/** Those that share a work. */
export interface Group {
  readonly name: string;
  readonly servers: readonly RpcServer[];
}

/** What is started. */
export interface Program {
  readonly launcher: string;
}

/** Of one process: without the network, and with the figures that tell its requests. */
const env: NodeJS.ProcessEnv = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_openmetrics",
  MODHOST_NODE_OFFLINE: "true",
  // A busy machine takes its time.
  MODHOST_LOAD_TIMEOUT: "300",
};

/**
 * In `<folder>/<name>`, which is made. Without a store it has one of its own. Gives its cache's
 * folder, too.
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

/** Seconds of all their processes so far. */
export const cpuOf = (servers: readonly RpcServer[]): number =>
  servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);

/** Bytes that any of them held at most since `forgetPeaks`. */
export const peakOf = (servers: readonly RpcServer[]): number => Math.max(...servers.map(({ pid }) => peakBytes(pid)));

export const forgetPeaks = (servers: readonly RpcServer[]): void => {
  for (const { pid } of servers) forgetPeak(pid);
};

/** Requests to the object store that they have made so far. */
export async function requestsOf(servers: readonly RpcServer[]): Promise<number> {
  const counts = await Promise.all(
    servers.map(async ({ url }) => {
      const answer = await fetch(`${url}/metrics`);
      if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`);
      const lines = (await answer.text()).matchAll(/^modhost_node_store_requests_total\{.*\} (\d+)/gm);
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
