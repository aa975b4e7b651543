/**
 * Client libraries for gateways. They are installed separately, because they have many packages.
 */
import { execFile } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { base36 } from "multiformats/bases/base36";
import type { CID } from "multiformats/cid";
import { ignoreLateCancels } from "./late_cancels.ts";

/** The parts of the libraries that are used here. */
export interface GatewayLibraries {
  createHeliaLight(): Helia;
  withHTTP(helia: Helia, where: HttpOptions): Helia;
  createVerifiedFetchWithHelia(helia: Helia): Promise<VerifiedFetch>;
  unixfs(helia: Helia): { cat(cid: CID): AsyncIterable<Uint8Array> };
  ipns(helia: Helia): { publish(key: string, value: CID): Promise<{ readonly publicKey: { toCID(): CID } }> };
  delegatedRoutingV1HttpApiClient(init: { url: string }): (components: { logger: unknown }) => RoutingClient;
  defaultLogger(): unknown;
  /** The class CID of the libraries: they accept no other. */
  readonly CID: typeof CID;
  readonly base36: typeof base36;
}

export interface Helia {
  readonly blockstore: { put(cid: CID, bytes: Uint8Array): Promise<CID> };
  start(): Promise<Helia>;
  stop(): Promise<void>;
}

interface HttpOptions {
  readonly delegatedRouters: readonly string[];
  readonly recursiveGateways: readonly string[];
  /**
   * Whether to accept HTTP. Without this and `allowLocal`, the libraries accept only HTTPS and
   * public addresses.
   */
  readonly allowInsecure: boolean;
  readonly allowLocal: boolean;
}

/** Returns options to use one gateway and no other server. */
export const onlyFrom = (url: string): HttpOptions => ({
  delegatedRouters: [url],
  recursiveGateways: [url],
  allowInsecure: true,
  allowLocal: true,
});

export interface VerifiedFetch {
  (resource: string, options?: { readonly headers?: Readonly<Record<string, string>> }): Promise<Response>;
  stop(): Promise<void>;
}

interface Filters {
  readonly filterAddrs?: readonly string[];
  readonly filterProtocols?: readonly string[];
}

export interface RoutingClient {
  start(): Promise<void>;
  stop(): Promise<void>;
  getProviders(cid: CID, filters?: Filters): AsyncIterable<PeerRecord>;
  getPeers(peer: CID, filters?: Filters): AsyncIterable<PeerRecord>;
  getClosestPeers(key: CID): AsyncIterable<PeerRecord>;
  getIPNS(name: CID): Promise<Uint8Array>;
  putIPNS(name: CID, record: Uint8Array): Promise<void>;
}

export interface PeerRecord {
  readonly ID: CID;
  readonly Addrs: readonly { toString(): string }[];
  readonly Protocols: readonly string[];
}

const source = fileURLToPath(new URL("libraries/", import.meta.url));
/** A folder that no search for sources or tests visits. */
export const librariesFolder = fileURLToPath(new URL("../../../node_modules/.cache/gateway-clients/", import.meta.url));

/** Installs the libraries unless they are installed as the lock file says. */
export async function gatewayLibraries(): Promise<GatewayLibraries> {
  const lock = "package-lock.json";
  const text = (folder: string, file: string) => readFile(join(folder, file), "utf8").catch(() => undefined);
  const [wanted, there] = await Promise.all([source, librariesFolder].map((folder) => text(folder, lock)));
  const isWhole = (await text(librariesFolder, "node_modules/.package-lock.json")) !== undefined;
  await cp(source, librariesFolder, { recursive: true });
  if (wanted !== there || !isWhole) await promisify(execFile)("npm", ["ci"], { cwd: librariesFolder });
  ignoreLateCancels();
  return (await import(pathToFileURL(join(librariesFolder, "index.mjs")).href)) as GatewayLibraries;
}
