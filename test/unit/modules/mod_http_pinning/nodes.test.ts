/**
 * Two nodes that pin on each other: each runs the pinning service, and each uses the commands for
 * the other's service.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create } from "kubo-rpc-client";
import type { NodeModule } from "modhost/node";
import { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { GoIpfs, withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { untilRight } from "#test/support/network/report.ts";
import { addUnpinned, pinsOf, type ServiceHost, startPinning } from "./support.ts";

let anna: ServiceHost;
let ben: ServiceHost;
/** The low-level node of anna's host. */
let node: LowLevelNode;
before(async () => {
  const keeper = (module: Module) => {
    const own = module.depends<NodeModule>("node");
    module.ready = () => {
      node = own.lowLevel;
    };
  };
  [anna, ben] = await Promise.all([
    startPinning({ node_offline: false }, { modules: { keeper } }),
    startPinning({ node_offline: false }),
  ]);
  for (const [name, from, to] of [
    ["ben", anna, ben],
    ["anna", ben, anna],
  ] as const) {
    await from.call(`pin/remote/service/add?arg=${name}&arg=http://127.0.0.1:${to.http}/pinning&arg=token-of-anna`);
  }
});
after(() => Promise.all([anna.stop(), ben.stop()]));

const clientOf = (host: ServiceHost) => create({ url: `http://127.0.0.1:${host.http}` });
/** Returns the text of a file that takes many blocks. */
const content = (seed: number) => Array.from({ length: 60_000 }, (_, at) => `${at * seed} `).join("");
const identityOf = (host: ServiceHost) => host.value<{ ID: string; Addresses: string[] }>("id");

async function read(host: ServiceHost, cid: string): Promise<string> {
  return (await host.call(`cat?arg=${cid}&offline=true`)).text;
}

test("each node pins at the other, which fetches the blocks from it", { timeout: 300_000 }, async () => {
  for (const [seed, from, to, service] of [
    [3, anna, ben, "ben"],
    [7, ben, anna, "anna"],
  ] as const) {
    const cid = await addUnpinned(from, content(seed));
    const pin = await clientOf(from).pin.remote.add(CID.parse(cid), { service, name: "far" });
    assert.deepEqual([pin.status, pin.cid.toString(), pin.name], ["pinned", cid, "far"]);
    assert.ok((await pinsOf(to)).includes(cid));
    assert.equal(await read(to, cid), content(seed));
    const [request] = (await to.list("?name=far")).results;
    const { ID, Addresses } = await identityOf(from);
    assert.deepEqual(request?.pin, { cid, name: "far", origins: Addresses });
    assert.deepEqual(request?.delegates, (await identityOf(to)).Addresses);
    const { Peers } = await to.value<{ Peers: { Peer: string }[] }>("swarm/peers");
    assert.ok(Peers.some(({ Peer }) => Peer === ID));
  }
});

test("a client library lists, counts and removes pins at a service", { timeout: 300_000 }, async () => {
  const { remote } = clientOf(anna).pin;
  const cids: string[] = [];
  for (let at = 0; at < 25; at += 1) {
    const cid = await addUnpinned(anna, `file ${at}\n`);
    await remote.add(CID.parse(cid), { service: "ben", name: `list ${at % 2}`, background: true });
    cids.push(cid);
  }
  const listed = async (query: object) => {
    const found = [];
    for await (const pin of remote.ls({ service: "ben", ...query })) found.push(pin);
    return found;
  };
  const statuses = ["queued", "pinning", "pinned"] as const;
  await untilRight(
    async () => [await listed({ name: "list 0" }), await listed({ name: "list 1" })],
    ([even, odd]) => even?.length === 13 && odd?.length === 12,
  );
  assert.equal((await listed({ name: "list 1", status: [...statuses] })).length, 12);
  const [newest] = await listed({ cid: [CID.parse(cids.at(-1) as string)] });
  assert.deepEqual([newest?.name, newest?.status], ["list 0", "pinned"]);
  const services = await remote.service.ls({ stat: true });
  const [stat] = services.map((service) => service.stat);
  assert.equal(stat?.status, "valid");
  assert.equal(stat?.status === "valid" && stat.pinCount.pinned > 25, true);
  await assert.rejects(remote.rm({ service: "ben", name: "list 0" }), /multiple remote pins are matching/);
  await remote.rmAll({ service: "ben", name: "list 0" });
  await remote.rmAll({ service: "ben", name: "list 1", status: [...statuses] });
  assert.deepEqual(await listed({ status: [...statuses], name: "list 0" }), []);
  await untilRight(
    async () => (await pinsOf(ben)).filter((cid) => cids.includes(cid)),
    ({ length }) => length === 0,
  );
  assert.deepEqual(
    (await pinsOf(ben)).filter((cid) => cids.includes(cid)),
    [],
  );
});

test("the MFS policy pins the current files at a service and replaces the previous pin", async () => {
  const { signal } = new AbortController();
  const { ID } = await identityOf(anna);
  const name = `policy/${ID}/mfs`;
  const policy = "config?arg=Pinning.RemoteServices.ben.Policies.MFS";
  await anna.call(`${policy}.Enable&arg=true&bool=true`);
  await anna.call(`${policy}.RepinInterval&arg=0s`);
  const roots: string[] = [];
  for (const at of [1, 2]) {
    await anna.call("files/write?arg=/file&create=true&truncate=true", { file: content(at * 101) });
    await node.mfsPolicy.round(signal);
    const { Hash } = await anna.value<{ Hash: string }>("files/stat?arg=/");
    roots.push(Hash);
    const { results } = await untilRight(
      () => ben.list(`?name=${encodeURIComponent(name)}`),
      (page) => page.count === 1 && page.results[0]?.pin.cid === Hash,
    );
    assert.deepEqual(
      results.map(({ pin }) => pin.cid),
      [Hash],
    );
    assert.equal(await read(ben, `${Hash}/file`), content(at * 101));
  }
  const [previous, last] = roots as [string, string];
  assert.notEqual(previous, last);
  const pins = await untilRight(
    () => pinsOf(ben),
    (all) => !all.includes(previous),
  );
  assert.deepEqual([pins.includes(previous), pins.includes(last)], [false, true]);
});

test("go-ipfs pins at the service, lists its pins and removes them", {
  skip: withoutGoIpfs,
  timeout: 300_000,
}, async () => {
  await using go = await GoIpfs.start();
  await go.call(`pin/remote/service/add?arg=ben&arg=http://127.0.0.1:${ben.http}/pinning&arg=token-of-ben`);
  const form = new FormData();
  form.append("file", new Blob([content(13)]));
  const [added] = await go.call<{ Hash: string }>("add?pin=false", form);
  const cid = added?.Hash as string;
  const pinned = { Status: "pinned", Cid: cid, Name: "theirs" };
  assert.deepEqual(await go.call(`pin/remote/add?arg=${cid}&service=ben&name=theirs`), [pinned]);
  assert.equal(await read(ben, cid), content(13));
  assert.deepEqual(await go.call("pin/remote/ls?service=ben"), [pinned]);
  const [services] = await go.call<{ RemoteServices: { Stat: unknown }[] }>("pin/remote/service/ls?stat=true");
  const PinCount = { Queued: 0, Pinning: 0, Pinned: 1, Failed: 0 };
  assert.deepEqual(services?.RemoteServices[0]?.Stat, { Status: "valid", PinCount });
  await go.call("pin/remote/rm?service=ben&name=theirs");
  assert.deepEqual(await go.call("pin/remote/ls?service=ben"), []);
});

test("an unknown token is refused with the error of the service", async () => {
  await anna.call(`pin/remote/service/add?arg=closed&arg=http://127.0.0.1:${ben.http}/pinning&arg=wrong`);
  const refused = 'reason: "UNAUTHORIZED", details: "The access token is missing or unknown": 401 Unauthorized';
  assert.deepEqual(await anna.failure("pin/remote/ls?service=closed"), [500, refused]);
  await anna.call("pin/remote/service/rm?arg=closed");
});

test("a CID that nobody has yet is pinned as soon as a peer has it", { timeout: 300_000 }, async () => {
  const offline = await startPinning();
  try {
    const text = content(11);
    const cid = await addUnpinned(offline, text);
    const { requestid } = await ben.pin({ cid, origins: (await identityOf(anna)).Addresses });
    assert.equal((await ben.until(requestid, "pinning")).status, "pinning");
    assert.equal(await addUnpinned(anna, text), cid);
    const { status } = await untilRight(
      () => ben.until(requestid, "pinned"),
      (pin) => pin.status === "pinned",
    );
    assert.equal(status, "pinned");
    assert.equal(await read(ben, cid), text);
  } finally {
    await offline.stop();
  }
});
