/**
 * Peers connect, work with a node and disconnect. Then the resources of the node are compared with
 * those before.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { more } from "#core/testing/handles.ts";
import { digestOf, keystream } from "#test/support/content.ts";
import { Report } from "#test/support/network/report.ts";
import { Rpc } from "#test/support/network/rpc.ts";
import { allowTunnels } from "#test/support/network/tunnels.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import { cutOff, play, type StoredFile } from "./scenes.ts";
import type { Holdings } from "./subject.ts";

export interface NetworkChurnOptions {
  /** Number of peers at the same time. */
  readonly peers: number;
  /** Rounds between two looks at the node's resources while no peer is connected. */
  readonly looks: number;
  /** Returns whether there is another round. */
  readonly more: (rounds: number) => boolean;
  /** Called after each look. */
  readonly onLook?: (look: Look) => void;
}

export interface Look {
  /** Rounds so far. */
  readonly rounds: number;
  readonly holdings: Holdings;
  /** Resources beyond those of the first look. */
  readonly left: readonly string[];
}

export interface NetworkChurnReport {
  readonly rounds: number;
  /** Number of checked results, and those that differ. */
  readonly checks: number;
  readonly wrong: readonly string[];
  readonly looks: readonly Look[];
  /**
   * Number of files that were added or pinned on the node. All of them are read again at the end.
   */
  readonly stored: number;
}

/** Timeout in milliseconds for background work after all peers have disconnected. */
const settleWithin = 60_000;

export async function churnNetwork(options: NetworkChurnOptions): Promise<NetworkChurnReport> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-network-churn-"));
  const report = new Report({ quiet: true });
  const stored: StoredFile[] = [];
  const looks: Look[] = [];
  const subject = await Subject.start(join(folder, "subject"));
  let rounds = 0;
  try {
    const node = await Rpc.of("the node", subject.url);
    await allowTunnels(node);
    while (options.more(rounds)) {
      await playRound({ node, report, stored, folder, round: rounds, peers: options.peers });
      rounds += 1;
      if (rounds % options.looks !== 0 && options.more(rounds)) continue;
      const look = await settledLook(subject, rounds, looks[0]?.holdings);
      looks.push(look);
      options.onLook?.(look);
    }
    await report.part("no file is lost", () => readAgain(report, node, stored));
  } finally {
    await subject.stop();
    await rm(folder, { recursive: true, force: true });
  }
  return { rounds, checks: report.checks, wrong: report.wrong, looks, stored: stored.length };
}

interface Round {
  readonly node: Rpc;
  readonly report: Report;
  readonly stored: StoredFile[];
  readonly folder: string;
  readonly round: number;
  readonly peers: number;
}

/**
 * New peers connect and work with the node at the same time. Then one is killed while it sends, and
 * the others disconnect.
 */
async function playRound({ node, report, stored, folder, round, peers }: Round): Promise<void> {
  const servers: RpcServer[] = [];
  try {
    await Promise.all(
      Array.from({ length: peers }, async (_, at) => {
        const own = join(folder, `${round}-${at}`);
        await mkdir(own);
        const server = await RpcServer.start({ folder: own, env: apiOnly });
        servers.push(server);
        const peer = await Rpc.of(`peer ${round}-${at}`, server.url);
        await allowTunnels(peer);
        await play({ report, node, peer, stored, at, seed: 100_000 * (at + 1) + 1000 * round });
        if (at !== 0) return;
        await report.part(`${peer.name} is killed`, () => cutOff(node, peer, round, () => server.kill()));
      }),
    );
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await Promise.all(servers.map((_, at) => rm(join(folder, `${round}-${at}`), { recursive: true, force: true })));
  }
}

/**
 * Waits until the node's background work has ended, or for the timeout. Resolves to its resources.
 */
async function settledLook(subject: Subject, rounds: number, first: Holdings | undefined): Promise<Look> {
  const end = performance.now() + settleWithin;
  for (;;) {
    const holdings = await subject.holdings();
    const left = leftIn(holdings, first);
    if (left.length === 0 || performance.now() > end) return { rounds, holdings, left };
    await pass(200);
  }
}

/** The store keeps some of its files open, and opens others as it grows. */
const segment = /^open file .*\/segments\//;
/** The number of running timers varies with pending waits: a few more are allowed. */
const moreTimers = 4;

function leftIn({ handles, network, listeners }: Holdings, first: Holdings | undefined): string[] {
  const open = Object.entries(network).flatMap(([kind, count]) => (count === 0 ? [] : [`${count} ${kind}`]));
  if (first === undefined) return open;
  const before = new Map(first.handles);
  before.set("Timeout", (before.get("Timeout") ?? 0) + moreTimers);
  const heard = more(new Map(Object.entries(listeners)), new Map(Object.entries(first.listeners)));
  const others = new Map(handles.filter(([kind]) => !segment.test(kind)));
  return [...open, ...more(others, before), ...heard.map((each) => `listeners: ${each}`)];
}

async function readAgain(report: Report, node: Rpc, stored: readonly StoredFile[]): Promise<void> {
  await node.all("repo/gc", { quiet: "true" });
  for (const { cid, size, seed } of stored) {
    report.same(`${cid} is still there`, await node.digest(`/ipfs/${cid}`), digestOf(keystream(size, seed)));
  }
}

class Subject {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: unknown) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(folder: string): Promise<Subject> {
    await mkdir(folder);
    const child = fork(fileURLToPath(new URL("subject.ts", import.meta.url)), [], {
      execArgv: ["--conditions=source"],
      env: { ...process.env, CHURN_FOLDER: folder },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const [port] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`the node ended with ${code}`))),
    ]);
    return new Subject(child, port);
  }

  async holdings(): Promise<Holdings> {
    const message = once(this.#child, "message");
    this.#child.send("holdings");
    const [holdings] = await message;
    return holdings as Holdings;
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.send("stop");
    await exited;
  }
}
