/** Peers on loopback that need no other services, and peers of other implementations. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { identify } from "@libp2p/identify";
import type { Stream } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { ping } from "@libp2p/ping";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p, type Libp2p } from "libp2p";
import { drained } from "#node/network/swarm/stream_backpressure.ts";
import { openSwarm, type Swarm } from "#node/network/swarm/swarm.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { openRepo, type Repo } from "#node/storage/repo/repo.ts";
import { NodeLog } from "#node/util/log.ts";

export interface PeerSetup {
  /** Values of the configuration by path. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** A store that the caller manages; by default one in memory. */
  readonly metadata?: MetadataStore;
  /** Folder of the repo, which is created unless it exists. */
  readonly folder?: string;
  readonly prepare?: (repo: Repo) => Promise<void>;
  /** Called before the node starts. */
  readonly prepareSwarm?: (swarm: Swarm) => void;
}

export interface TestPeer extends AsyncDisposable {
  readonly swarm: Swarm;
  readonly repo: Repo;
  readonly notices: readonly string[];
  /** Level and message of log lines. */
  readonly logged: readonly string[];
  stop(): Promise<void>;
}

export async function startPeer(setup: PeerSetup = {}): Promise<TestPeer> {
  const { config = {}, metadata, folder, prepare, prepareSwarm } = setup;
  const own = folder ?? (await mkdtemp(join(tmpdir(), "modhost-peers-")));
  const repo = await openRepo(own, { profile: "local" });
  const notices: string[] = [];
  const logged: string[] = [];
  const log = new NodeLog();
  log.listen(({ level, message }) => logged.push(`${level} ${message}`));
  const close = async () => {
    await repo.close();
    if (folder === undefined) await rm(own, { recursive: true, force: true });
  };
  try {
    for (const [path, value] of Object.entries(config)) await repo.config.set(path, () => value);
    await prepare?.(repo);
    const onNotice = (sentence: string) => notices.push(sentence);
    const swarm = await openSwarm({ repo, metadata: metadata ?? memoryMetadata(), log, onNotice });
    prepareSwarm?.(swarm);
    await swarm.start();
    let stopped: Promise<void> | undefined;
    const stop = () => (stopped ??= swarm.stop().then(close));
    return { swarm, repo, notices, logged, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A plain libp2p peer. */
export async function startStranger(): Promise<Libp2p & AsyncDisposable> {
  const stranger = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: { identify: identify(), ping: ping({ maxInboundStreams: 8, maxOutboundStreams: 8 }) },
  });
  return Object.assign(stranger, { [Symbol.asyncDispose]: async () => stranger.stop() });
}

export const connectTo = (from: TestPeer, to: TestPeer) => from.swarm.connect(to.swarm.id, to.swarm.listenAddresses());

/** Resolves to the details of the next event of that name from a peer's libp2p. */
export function next<T>({ swarm }: TestPeer, event: "peer:connect" | "peer:disconnect" | "peer:identify"): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  swarm.libp2p.addEventListener(event, ({ detail }: { detail: unknown }) => resolve(detail as T), { once: true });
  return promise;
}

/** Both ends of a stream between two nodes. */
export async function streamBetween(t: TestContext): Promise<{ readonly near: Stream; readonly far: Stream }> {
  const a = await startPeer();
  const b = await startPeer();
  t.after(() => Promise.all([a.stop(), b.stop()]));
  const { promise, resolve } = Promise.withResolvers<Stream>();
  await a.swarm.libp2p.handle("/test/stream", resolve);
  await connectTo(b, a);
  const far = await b.swarm.libp2p.dialProtocol(a.swarm.id, "/test/stream");
  far.send(new Uint8Array(1));
  return { near: await promise, far };
}

/**
 * Sends up to that many bytes, until no more are accepted for a while; resolves to the number of
 * accepted bytes.
 */
export async function fill(stream: Stream, maxBytes: number, milliseconds = 500): Promise<number> {
  let sent = 0;
  for (const piece = new Uint8Array(256 * 1024); sent < maxBytes; sent += piece.length) {
    if (stream.send(piece)) continue;
    const isTaken = await drained(stream, AbortSignal.timeout(milliseconds)).then(
      () => true,
      () => false,
    );
    if (!isTaken) break;
  }
  return sent;
}
