/** Makes the same calls in process and through the client libraries, on one node. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { create as createHttpClient } from "ipfs-http-client";
import { create as createKuboClient } from "kubo-rpc-client";
import type { Node, NodeModule } from "modhost/node";
import { CID } from "multiformats/cid";
import { startRpc } from "../../mod_http_api/commands/support.ts";

/** A call of a client or of the node, whose types are not compatible. */
// biome-ignore lint/suspicious/noExplicitAny: the libraries have CIDs of their own
export type Call = (client: any) => unknown;

export interface Compared extends AsyncDisposable {
  readonly node: Node;
  /**
   * Resolves to the result that the node and both clients return. `kubo` and `http` compare the
   * node with that library only.
   */
  same(call: Call, which?: "both" | "kubo" | "http"): Promise<unknown>;
  /** Resolves to the error text that all of them give. */
  sameFailure(call: Call, which?: "both" | "kubo" | "http"): Promise<string>;
}

/** Resources for the tests of a file: started before them, and closed after them. */
export function comparing(): Omit<Compared, typeof Symbol.asyncDispose> {
  let compared: Compared;
  before(async () => {
    compared = await startCompared();
  });
  after(() => compared[Symbol.asyncDispose]());
  return {
    get node() {
      return compared.node;
    },
    same: (...given) => compared.same(...given),
    sameFailure: (...given) => compared.sameFailure(...given),
  };
}

async function startCompared(config: Record<string, unknown> = {}): Promise<Compared> {
  const host = await startRpc(config);
  const url = `http://127.0.0.1:${host.http}`;
  const node = host.host.exports<NodeModule>("node");
  const kubo = createKuboClient({ url });
  const http = createHttpClient({ url });
  const clients = { both: [kubo, http], kubo: [kubo], http: [http] };
  return {
    node,
    async same(call, which = "both") {
      const own = await plain(await call(node));
      for (const client of clients[which]) assert.deepEqual(own, await plain(await call(client)));
      return own;
    },
    async sameFailure(call, which = "both") {
      const own = await failure(call, node);
      for (const client of clients[which]) assert.equal(own, await failure(call, client));
      return own;
    },
    [Symbol.asyncDispose]: () => host.stop(),
  };
}

async function failure(call: Call, client: unknown): Promise<string> {
  try {
    await plain(await call(client));
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("the call did not fail");
}

/**
 * Converts CIDs to texts, byte streams to one text, and other streams to lists; fields without a
 * value are dropped.
 */
export async function plain(value: unknown): Promise<unknown> {
  if (typeof value !== "object" || value === null) return value;
  const cid = CID.asCID(value);
  if (cid !== null) return `CID ${cid}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("latin1")}`;
  if (Symbol.asyncIterator in value) {
    const all = await Array.fromAsync(value as AsyncIterable<unknown>);
    return all.length > 0 && all.every((each) => each instanceof Uint8Array)
      ? plain(Buffer.concat(all as Uint8Array[]))
      : plain(all);
  }
  if (Array.isArray(value)) return Promise.all(value.map(plain));
  const pairs = await Promise.all(Object.entries(value).map(async ([key, each]) => [key, await plain(each)] as const));
  return Object.fromEntries(pairs.filter(([, each]) => each !== undefined));
}
