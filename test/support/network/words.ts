/**
 * Names and messages between two nodes, over both transports: the routing table, and publish and
 * subscribe.
 */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { base58btc } from "multiformats/bases/base58";
import { keystream } from "#test/support/content.ts";
import { type Report, untilRight } from "./report.ts";
import type { Rpc, RpcQuery } from "./rpc.ts";

/** How the RPC API writes texts: as in version 0.9.0, or with a multibase prefix. */
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
/** Returns the peer id of a sender. Plain messages contain its bytes. */
const senderOf = (wire: Wire, from: string) =>
  wire === "plain" ? base58btc.baseEncode(Buffer.from(from, "base64")) : from;

/**
 * Checks that every message of `from` reaches `to` once and unchanged. `oneByOne`: sends each
 * message after the previous one has arrived.
 */
export async function messagesCross(
  report: Report,
  [from, fromWire]: readonly [Rpc, Wire],
  [to, toWire]: readonly [Rpc, Wire],
  oneByOne = false,
): Promise<void> {
  const topic = `talk of ${from.name}`;
  const ended = new AbortController();
  try {
    // Both nodes subscribe: only then does each know that the other is interested in the topic.
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
      );
      report.holds(`peers of the topic on ${node.name}`, peers, `with ${other.name}`, peers.includes(other.id));
    }
    const sent = Array.from({ length: messages }, (_, at) => `message ${at} of ${from.name} \u{1f344}`);
    for (const [at, text] of sent.entries()) {
      await say(from, fromWire, topic, text);
      if (!oneByOne) continue;
      await untilRight(
        async () => received?.length ?? 0,
        (count) => count > at,
        10_000,
        5,
      );
    }
    const texts = () => [...(received ?? [])].map(({ data }) => textOf(toWire, data)).sort();
    const got = await untilRight(
      async () => texts(),
      ({ length }) => length >= messages,
    );
    report.same(`messages of ${from.name} (${fromWire}) on ${to.name} (${toWire})`, got, [...sent].sort());
    const each = (of: (message: Message) => string) => [...new Set((received ?? []).map(of))];
    report.same(
      "by whom",
      each(({ from: sender }) => senderOf(toWire, sender)),
      [from.id],
    );
    report.same(
      "topic",
      each(({ topicIDs }) => topicIDs.join()),
      [topicFor(toWire, topic)],
    );
    report.same("distinct sequence numbers", each(({ seqno }) => seqno).length, messages);
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

/** Subscribes, and collects messages until the signal aborts. */
async function subscribed(node: Rpc, wire: Wire, topic: string, signal: AbortSignal): Promise<readonly Message[]> {
  const received: Message[] = [];
  const response = await node.post("pubsub/sub", { arg: topicFor(wire, topic) }, { signal });
  const lines = createInterface(Readable.fromWeb(response.body as never));
  // js-ipfs sends an empty object first.
  lines.on("line", (line) => line === "{}" || received.push(JSON.parse(line) as Message)).on("error", () => undefined);
  return received;
}

/**
 * Resolves a name of `from` on `to`, and again after it was changed. `options`: of `name/publish`.
 */
export async function namesCross(
  report: Report,
  from: Rpc,
  to: Rpc,
  seed: number,
  options: RpcQuery = {},
): Promise<void> {
  const { key, name } = await named(from, `${to.name}-${seed}`);
  for (const change of [0, 1]) {
    const path = await published(from, key, seed + change, options);
    const found = await untilRight(
      () => resolved(to, name),
      (resolvedPath) => resolvedPath === path,
      15_000,
    );
    report.same(`a name of ${from.name} resolved on ${to.name}${change ? ", changed" : ""}`, found, path);
  }
}

/**
 * Checks a node without a routing table: `to` learns the names of `from` over publish and
 * subscribe.
 */
export async function namesFollowed(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  const noTable = await to.all("dht/query", { arg: from.id }).then(() => "", messageOf);
  report.holds(`routing table of ${to.name}`, noTable, "a refusal", noTable !== "");
  const { key, name } = await named(from, to.name);
  const before = await resolved(to, name);
  report.holds(`a name of ${from.name} that is not published`, before, "a refusal", /could not resolve/.test(before));
  const { Strings } = await to.one<{ Strings: readonly string[] }>("name/pubsub/subs", { "ipns-base": "b58mh" });
  report.same(`then followed by ${to.name}`, Strings, [`/ipns/${name}`]);
  for (const change of [0, 1, 2]) {
    const path = await published(from, key, seed + change);
    const found = await untilRight(
      () => resolved(to, name),
      (resolvedPath) => resolvedPath === path,
    );
    report.same(`published on ${from.name}${change ? " again" : ""}, known to ${to.name}`, found, path);
  }
}

/** Makes a key. Returns it with the name that it signs. */
export async function named(from: Rpc, what: string): Promise<{ readonly key: string; readonly name: string }> {
  const key = `name-${what}`;
  const { Id } = await from.one<{ Id: string }>("key/gen", { arg: key, type: "ed25519", "ipns-base": "b58mh" });
  return { key, name: Id };
}

/**
 * Publishes new content under a name.
 * @returns the path that the name now resolves to
 */
export async function published(from: Rpc, key: string, seed: number, options: RpcQuery = {}): Promise<string> {
  const path = `/ipfs/${await from.add({ file: [...keystream(500, seed)] })}`;
  await from.one("name/publish", { arg: path, key, lifetime: "1h", ...options });
  return path;
}

/** Resolves to the path of a name, or to the error text. */
export const resolved = (on: Rpc, name: string): Promise<string> =>
  on.one<{ Path: string }>("name/resolve", { arg: name, nocache: "true" }).then(({ Path }) => Path, messageOf);

const messageOf = (error: Error): string => error.message;
