/** Names and messages between two nodes, over both ways there are: the routing table, and publish and subscribe. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { keystream } from "../support/content.ts";
import { type Report, untilRight } from "./report.ts";
import type { Rpc } from "./rpc.ts";

/** Texts of the wire: as 0.9.0 has them, or each behind its multibase prefix. */
export type Wire = "plain" | "multibase";

interface Message {
  readonly from: string;
  readonly data?: string;
  readonly seqno: string;
  readonly topicIDs: readonly string[];
}

const messages = 50;

const multibase = (text: string) => `u${Buffer.from(text).toString("base64url")}`;
const topicFor = (wire: Wire, topic: string) => (wire === "plain" ? topic : multibase(topic));
const textOf = (wire: Wire, data: string | undefined) =>
  wire === "plain"
    ? Buffer.from(data ?? "", "base64").toString()
    : Buffer.from((data ?? "u").slice(1), "base64url").toString();

/** Every message of `from` reaches `to`, once and whole. */
export async function messagesCross(
  report: Report,
  [from, fromWire]: readonly [Rpc, Wire],
  [to, toWire]: readonly [Rpc, Wire],
): Promise<void> {
  const topic = `talk of ${from.name}`;
  const ended = new AbortController();
  try {
    // Both listen: only then does each know the other as somebody who cares.
    const [received] = await Promise.all(
      (
        [
          [to, toWire],
          [from, fromWire],
        ] as const
      ).map(([node, wire]) => subscribed(node, wire, topic, ended.signal)),
    );
    for (const [node, wire, other] of [
      [from, fromWire, to],
      [to, toWire, from],
    ] as const) {
      const peers = await untilRight(
        async () => (await node.one<{ Strings: string[] }>("pubsub/peers", { arg: topicFor(wire, topic) })).Strings,
        (ids) => ids.includes(other.id),
        15_000,
      );
      report.holds(`peers of the topic on ${node.name}`, peers, `with ${other.name}`, peers.includes(other.id));
    }
    const sent = Array.from({ length: messages }, (_, at) => `message ${at} of ${from.name} \u{1f344}`);
    for (const text of sent) await say(from, fromWire, topic, text);
    const texts = () => [...(received ?? [])].map(({ data }) => textOf(toWire, data)).sort();
    const got = await untilRight(
      async () => texts(),
      ({ length }) => length >= messages,
    );
    report.same(`messages of ${from.name} on ${to.name}`, got, [...sent].sort());
  } finally {
    ended.abort();
  }
}

async function say(node: Rpc, wire: Wire, topic: string, text: string): Promise<void> {
  if (wire === "plain") {
    await node.all("pubsub/pub", { arg: [topic, text] });
    return;
  }
  const body = new FormData();
  body.append("file", new Blob([text]));
  await node.all("pubsub/pub", { arg: multibase(topic) }, body);
}

/** Messages as they come, until the signal aborts. */
async function subscribed(node: Rpc, wire: Wire, topic: string, signal: AbortSignal): Promise<readonly Message[]> {
  const received: Message[] = [];
  const answer = await node.post("pubsub/sub", { arg: topicFor(wire, topic) }, { signal });
  const lines = createInterface(Readable.fromWeb(answer.body as never));
  lines.on("line", (line) => received.push(JSON.parse(line) as Message)).on("error", () => undefined);
  return received;
}

/** A name of `from` leads `to` to content, and after it was changed to the new one. */
export async function namesCross(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  const key = `name-${to.name}`;
  const { Id: name } = await from.one<{ Id: string }>("key/gen", { arg: key, type: "ed25519" });
  for (const change of [0, 1]) {
    const cid = await from.add({ file: [...keystream(500, seed + change)] });
    await from.one("name/publish", { arg: `/ipfs/${cid}`, key, lifetime: "1h" });
    const path = await untilRight(
      () => to.one<{ Path: string }>("name/resolve", { arg: name, nocache: "true" }).then(({ Path }) => Path),
      (answer) => answer === `/ipfs/${cid}`,
      15_000,
    );
    report.same(`a name of ${from.name} resolved on ${to.name}${change ? ", changed" : ""}`, path, `/ipfs/${cid}`);
  }
}
