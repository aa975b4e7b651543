/** Scenes of a node with one peer while the peer is connected. */
import { setTimeout as pass } from "node:timers/promises";
import { keystream } from "#test/support/content.ts";
import { connects, fileCrosses, findsPeer, pings, providesFor, treeCrosses } from "#test/support/network/meeting.ts";
import type { Report } from "#test/support/network/report.ts";
import type { Rpc } from "#test/support/network/rpc.ts";
import { tunnels } from "#test/support/network/tunnels.ts";
import { messagesCross, namesCross } from "#test/support/network/words.ts";

/** A file that the node has to have at the end. */
export interface StoredFile {
  readonly cid: string;
  readonly size: number;
  readonly seed: number;
}

export interface Play {
  readonly report: Report;
  /** The node under test. */
  readonly node: Rpc;
  readonly peer: Rpc;
  readonly stored: StoredFile[];
  /** Number of the peer: only one peer at a time plays some scenes. */
  readonly at: number;
  /** Contents are made from it and the next thousand numbers. */
  readonly seed: number;
}

const mebibyte = 2 ** 20;

export async function play(parts: Play): Promise<void> {
  const { report, node, peer, at, seed } = parts;
  const scene = (title: string, work: () => Promise<void>) => report.part(`${peer.name}, ${title}`, work);
  await scene("meeting", () => (at % 2 === 0 ? connects(report, peer, node) : connects(report, node, peer)));
  await Promise.all([
    scene("contents", () => contents(parts)),
    scene("names", () => names(parts)).then(() => scene("messages", () => messages(parts))),
  ]);
  await scene("coming back", () => comesBack(parts));
  await scene("routing", async () => {
    await findsPeer(report, node, peer);
    await pings(report, node, peer, 1);
    await given(node, seed + 900);
  });
}

async function contents({ report, node, peer, stored, seed }: Play): Promise<void> {
  for (const [at, size] of [100, 70_000, 2 * mebibyte].entries()) {
    const own = seed + at;
    stored.push({ cid: await fileCrosses(report, node, peer, size, own), size, seed: own });
    const foreign = seed + 10 + at;
    const cid = await fileCrosses(report, peer, node, size, foreign);
    await node.one("pin/add", { arg: cid });
    stored.push({ cid, size, seed: foreign });
  }
  await treeCrosses(report, peer, node, seed + 100);
  await providesFor(report, peer, node, seed + 200);
  await providesFor(report, node, peer, seed + 300);
}

/** A read continues if its peer disconnects in the middle and reconnects, whoever dials first. */
async function comesBack({ report, node, peer, seed }: Play): Promise<void> {
  let over = false;
  const reading = fileCrosses(report, peer, node, 4 * mebibyte, seed + 400).finally(() => {
    over = true;
  });
  await node.all("swarm/disconnect", { arg: peer.address });
  // A connection that is being closed may still count as open.
  while (!over) {
    await peer.all("swarm/connect", { arg: node.address });
    await pass(100);
  }
  await reading;
  await connects(report, peer, node);
}

async function names({ report, node, peer, seed }: Play): Promise<void> {
  await namesCross(report, peer, node, seed + 500);
  await namesCross(report, node, peer, seed + 510);
  await node.one("key/rm", { arg: `name-${peer.name}-${seed + 510}` });
}

async function messages({ report, node, peer, at }: Play): Promise<void> {
  await messagesCross(report, [peer, "plain"], [node, "plain"]);
  if (at !== 0) return;
  await messagesCross(report, [node, "plain"], [peer, "plain"]);
  await tunnels(report, node, peer);
}

/** Calls for content that nobody has end when the caller disconnects. */
async function given(node: Rpc, seed: number): Promise<void> {
  const cid = await node.add({ file: [...keystream(100, seed)] }, { "only-hash": "true" });
  const signal = AbortSignal.timeout(300);
  for (const command of ["cat", "dht/findprovs"]) {
    await node
      .post(command, { arg: cid }, { signal })
      .then((response) => response.text())
      .catch(() => undefined);
  }
}

/** Kills the peer while it sends. The caller of the read waits a little and disconnects. */
export async function cutOff(node: Rpc, peer: Rpc, round: number, kill: () => Promise<void>): Promise<void> {
  const cid = await peer.add({ file: [...keystream(16 * mebibyte, 10_000_000 + round)] });
  const leaving = new AbortController();
  const reading = node.post("cat", { arg: cid }, { signal: leaving.signal });
  const response = await reading;
  const reader = response.body?.getReader();
  await reader?.read();
  await kill();
  setTimeout(() => leaving.abort(), 500);
  await (async () => {
    while (!(await reader?.read())?.done);
  })().catch(() => undefined);
}
