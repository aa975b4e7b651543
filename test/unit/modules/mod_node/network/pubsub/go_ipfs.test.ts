/** Exchanges unsigned messages between go-ipfs and nodes, over both routers. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parseMultiaddr, splitPeer } from "#node/network/swarm/multiaddr.ts";
import { eventually } from "#test/support/eventually.ts";
import { GoIpfs, withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { follow, startNode, take, textsOf } from "./support.ts";

const skip = withoutGoIpfs;

/** A go-ipfs with pubsub enabled. */
function startGo(router: string, isUnsigned: boolean): Promise<GoIpfs> {
  return GoIpfs.start(["--enable-pubsub-experiment"], async (repo) => {
    const file = join(repo, "config");
    const config = JSON.parse(await readFile(file, "utf8"));
    config.Pubsub = { Router: router, DisableSigning: isUnsigned };
    await writeFile(file, JSON.stringify(config));
  });
}

interface Message {
  readonly from: string;
  readonly data: string;
}

/**
 * Returns the texts of messages as they arrive, each with the author's id; resolves when the
 * subscription is active.
 */
async function subscribe(go: GoIpfs, topic: string, signal: AbortSignal) {
  const response = await fetch(`${go.url}/api/v0/pubsub/sub?arg=${topic}`, { method: "POST", signal });
  const received: string[] = [];
  let waiting = Promise.withResolvers<void>();
  const reading = async () => {
    for await (const piece of response.body ?? []) {
      for (const line of Buffer.from(piece).toString().split("\n")) {
        if (line === "") continue;
        const { from, data } = JSON.parse(line) as Message;
        received.push(`${Buffer.from(data, "base64")} of ${Buffer.from(from, "base64").toString("hex")}`);
      }
      waiting.resolve();
      waiting = Promise.withResolvers();
    }
  };
  reading().catch(() => undefined);
  return async (count: number): Promise<string[]> => {
    while (received.length < count) await waiting.promise;
    return received.splice(0);
  };
}

for (const router of ["gossipsub", "floodsub"]) {
  test(`over ${router} unsigned messages cross between us and go-ipfs, and over each other`, { skip }, async (t) => {
    const unsigned = { "Pubsub.DisableSigning": true, "Pubsub.Router": router };
    const leaving = new AbortController();
    const [far, strict] = await Promise.all([startGo(router, true), startGo(router, false)]);
    t.after(() => Promise.all([far, strict].map((go) => go[Symbol.asyncDispose]())));
    t.after(() => leaving.abort());
    const [near, end] = await Promise.all([startNode(t, unsigned), startNode(t, unsigned)]);
    const [here, beyond] = await follow("plain", near, end);
    const [there, signed] = await Promise.all([far, strict].map((go) => subscribe(go, "plain", leaving.signal)));
    assert.ok(there && signed);
    for (const go of [far, strict]) {
      const { id, address } = splitPeer(parseMultiaddr(go.address));
      await near.network.swarm.connect(id, address === undefined ? [] : [address]);
    }
    const known = async () => {
      const lists = await Promise.all(
        [far, strict].map((go) => go.call<{ Strings: string[] | null }>("pubsub/peers?arg=plain")),
      );
      const us = String(near.network.swarm.id);
      return lists.every(([list]) => list?.Strings?.includes(us)) && near.pubsub.peers("plain").length === 3;
    };
    await eventually("all know each other", known, { every: 50 });

    const hex = (id: { toMultihash(): { bytes: Uint8Array } }) => Buffer.from(id.toMultihash().bytes).toString("hex");
    for (const text of ["one", "same", "same"]) await end.pubsub.publish("plain", Buffer.from(text));
    const by = hex(end.network.swarm.id);
    assert.deepEqual((await there(3)).sort(), [`one of ${by}`, `same of ${by}`, `same of ${by}`]);
    for (const text of ["two", "same", "same"]) await far.call(`pubsub/pub?arg=plain&arg=${text}`);
    const received = await take(beyond, 6);
    assert.deepEqual(textsOf(received).sort(), ["one", "same", "same", "same", "same", "two"]);
    assert.deepEqual(
      [...new Set(received.map(({ from }) => String(from)))].sort(),
      [far.id, String(end.network.swarm.id)].sort(),
    );
    assert.deepEqual(textsOf(await take(here, 6)).sort(), textsOf(received).sort());
    // A node that requires signatures neither receives these messages nor reaches the others.
    await strict.call("pubsub/pub?arg=plain&arg=signed");
    await far.call("pubsub/pub?arg=plain&arg=last");
    assert.deepEqual(textsOf(await take(beyond, 1)), ["last"]);
    assert.match((await signed(1)).join(), /^signed of /);
  });
}
