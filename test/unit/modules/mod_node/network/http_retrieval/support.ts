/** Gateways that follow the instructions of a test, and a node that fetches blocks from them. */
import type { TestContext } from "node:test";
import { generateKeyPair } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import type { CID } from "multiformats/cid";
import { Session } from "#node/network/bitswap/session.ts";
import { WantManager } from "#node/network/bitswap/want_manager.ts";
import type { BlockClient, Outcome } from "#node/network/http_retrieval/block_client.ts";
import { HttpSources } from "#node/network/http_retrieval/http_sources.ts";
import type { RetrievalSettings } from "#node/network/http_retrieval/settings.ts";
import type { ProviderRecord } from "#node/network/routing/provider_record.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { NodeLog } from "#node/util/log.ts";

type FakeResponse = (cid: CID, signal: AbortSignal) => Outcome | Promise<Outcome>;

export const absent: Outcome = { kind: "absent" };
export const block = ({ bytes }: Block): Outcome => ({ kind: "block", bytes });

/** Responds only when the request is aborted. */
export const never: FakeResponse = (_cid, signal) =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve({ kind: "failed", reason: "aborted" }));
  });

export const holding =
  (blocks: readonly Block[]): FakeResponse =>
  (cid) => {
    const found = blocks.find((each) => each.cid.equals(cid));
    return found === undefined ? absent : block(found);
  };

export class FakeGateway implements BlockClient {
  /** CIDs of the blocks that were requested from it. */
  readonly requests: string[] = [];
  respond: FakeResponse;
  probed = 0;
  probeResponse: Outcome = { kind: "block", bytes: new Uint8Array() };
  closed = false;
  active = 0;
  most = 0;

  constructor(respond: FakeResponse) {
    this.respond = respond;
  }

  async probe(): Promise<Outcome> {
    this.probed += 1;
    return this.probeResponse;
  }

  async get(cid: CID, signal: AbortSignal): Promise<Outcome> {
    this.requests.push(cid.toString());
    this.active += 1;
    this.most = Math.max(this.most, this.active);
    try {
      return await this.respond(cid, signal);
    } finally {
      this.active -= 1;
    }
  }

  async has(cid: CID, signal: AbortSignal): Promise<Outcome> {
    const outcome = await this.respond(cid, signal);
    return outcome.kind === "block" ? { kind: "present" } : outcome;
  }

  close(): void {
    this.closed = true;
  }
}

export const settings = (given: Partial<RetrievalSettings> = {}): RetrievalSettings => ({
  enabled: true,
  workers: 16,
  maxBlockSize: 2 ** 21,
  insecure: false,
  allows: () => true,
  mayDial: () => true,
  ...given,
});

export async function provider(...addresses: string[]): Promise<ProviderRecord> {
  const id = peerIdFromPrivateKey(await generateKeyPair("Ed25519"));
  return { id, addresses: addresses.map(parseMultiaddr), protocols: ["transport-ipfs-gateway-http"] };
}

export interface Retrieval {
  readonly blocks: BlockService;
  readonly wants: WantManager;
  readonly sources: HttpSources;
  /** The session that requests all blocks. */
  readonly session: Session;
}

/**
 * Creates a block service without blocks, and gateways by the host of `https://HOST:443`. The
 * routing system names all of them.
 */
export async function retrieval(
  t: TestContext,
  gateways: Readonly<Record<string, FakeGateway>>,
  given: Partial<RetrievalSettings> = {},
): Promise<Retrieval> {
  const log = new NodeLog();
  const blocks = new BlockService(memoryBlocks());
  const wants = new WantManager({ blocks, log, connect: async () => {} });
  const sources = new HttpSources({
    receiver: wants,
    log,
    settings: () => settings(given),
    client: ({ host }) => gateways[host] as FakeGateway,
  });
  wants.sources = sources;
  const records = await Promise.all(Object.keys(gateways).map((host) => provider(`/dns/${host}/tcp/443/tls/http`)));
  wants.providers = {
    async *findProviderPeers() {
      yield* records;
    },
  };
  const session = new Session(wants);
  blocks.source = { fetch: (cid, signal, buffers) => wants.fetch(session, cid, signal, buffers) };
  t.after(() => {
    sources.close();
    wants.close();
  });
  return { blocks, wants, sources, session };
}
