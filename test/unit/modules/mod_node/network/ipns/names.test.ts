import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PeerId } from "#node/formats/peer_id.ts";
import { resolveName } from "#node/network/ipns/resolver.ts";
import { publishedKey } from "#node/network/ipns_record/keys.ts";
import { decodeRecord, encodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, parseTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { decodeKey, generateKey } from "#node/storage/keystore/key.ts";

const empty = "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const hour = 3_600_000;

let folder: string;
let node: LowLevelNode;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-names-"));
  node = await openNode({ repo: folder, offline: true });
});
after(async () => {
  await node.close();
  await rm(folder, { recursive: true, force: true });
});

const made = async (name: string, type = "ed25519") => {
  await node.keys.generate(name, { type });
  return node.names.key(name);
};
const last = async (id: PeerId) => decodeRecord((await node.metadata.get(publishedKey(id))) as Uint8Array);

test("a name resolves to what was published last, and its sequence grows when that changes", async () => {
  const key = await made("grows");
  const sequences: bigint[] = [];
  for (const path of [empty, empty, "/ipfs/bafkqaaa/a/b/", empty]) {
    assert.equal(await node.names.publish(key, path), path);
    assert.equal(await node.names.resolve(key.id.toString()), path);
    sequences.push((await last(key.id)).sequence);
  }
  assert.deepEqual(sequences, [0n, 0n, 1n, 2n]);
});

test("records carry their validity and their TTL", async () => {
  const key = await made("holds");
  const before = timestampAfter(hour);
  await node.names.publish(key, "bafkqaaa/a", { lifetime: hour, ttl: 1500 });
  const { value, validity, ttl, signatureV1, signatureV2 } = await last(key.id);
  assert.equal(Buffer.from(value).toString(), "/ipfs/bafkqaaa/a");
  const end = parseTimestamp(validity) ?? 0n;
  assert.ok(end >= before && end <= timestampAfter(hour));
  assert.equal(ttl, 1_500_000_000n);
  assert.ok(signatureV1.length > 0 && signatureV2.length > 0);
});

test("a record that expires sooner does not replace one with the same value", async () => {
  const key = await made("longer");
  await node.names.publish(key, empty, { lifetime: 2 * hour });
  await assert.rejects(node.names.publish(key, empty, { lifetime: hour }), {
    message: "can't replace a newer record with an older one",
  });
  await assert.rejects(node.names.publish(key, "/ipfs/bafkqaaa", { lifetime: -hour }), { message: "expired record" });
  assert.equal(await node.names.resolve(key.id.toString()), empty);
  await node.names.publish(key, "/ipfs/bafkqaaa", { lifetime: hour });
  assert.equal(await node.names.resolve(key.id.toString()), "/ipfs/bafkqaaa");
});

test("a refused record counts for the next sequence number, also after a restart, as in go-ipfs", async () => {
  const key = await made("refused");
  await node.names.publish(key, empty);
  await assert.rejects(node.names.publish(key, "/ipfs/bafkqaaa", { lifetime: -hour }), { message: "expired record" });
  await node.close();
  node = await openNode({ repo: folder, offline: true });
  assert.equal(await node.names.resolve(key.id.toString()), empty);
  await node.names.publish(key, empty, { lifetime: hour });
  assert.equal((await last(key.id)).sequence, 2n);
});

test("the given sequence number of a first record must be above zero", async () => {
  const key = await made("numbered");
  const message = "sequence number must be greater than the current record sequence";
  await assert.rejects(node.names.publish(key, empty, { sequence: 0n }), { message });
  await node.names.publish(key, empty, { sequence: 1n });
  assert.equal((await last(key.id)).sequence, 1n);
});

test("concurrent publishes are applied one after the other", async () => {
  const key = await made("at once");
  const paths = Array.from({ length: 8 }, (_, at) => `${empty}/${at}`);
  await Promise.all(paths.map((path) => node.names.publish(key, path)));
  const { sequence, value } = await last(key.id);
  assert.equal(sequence, 7n);
  assert.equal(Buffer.from(value).toString(), `${empty}/7`);
});

test("keys are found by name and by peer id in any form", async () => {
  const key = await made("forms", "rsa");
  const cid = key.id.toCID().toString();
  for (const text of ["forms", key.id.toString(), cid]) assert.ok((await node.names.key(text)).id.equals(key.id));
  const own = node.repo.identity.peerId;
  for (const text of ["self", own.toString(), own.toCID().toString()]) {
    assert.ok((await node.names.key(text)).id.equals(own));
  }
  await assert.rejects(node.names.key("x"), { message: "no key by the given name was found" });
  await assert.rejects(node.names.key(nobody), { message: "no key by the given name or PeerID was found" });
  await node.names.publish(key, empty);
  assert.equal(await node.names.resolve(`/ipns/${cid}`), empty);
});

test("names that resolve to names are followed, with the path below them, up to a depth", async () => {
  const one = await made("one");
  const two = await made("two");
  await node.names.publish(two, `${empty}/below/`);
  await node.names.publish(one, `/ipns/${two.id}/more`);
  assert.equal(await node.names.resolve(`${one.id}/a//b/`), `${empty}/below/more/a//b/`);
  assert.deepEqual(await node.names.find(`${one.id}/x`, { depth: 1 }), {
    path: `/ipns/${two.id}/more/x`,
    limited: true,
    ttlMs: undefined,
  });
  await node.names.publish(two, `/ipns/${one.id}`);
  await assert.rejects(node.names.resolve(`${one.id}`), {
    message: "could not resolve name (recursion limit exceeded)",
  });
});

test("the shortest TTL counts for names that lead to each other", async () => {
  const long = await made("long");
  const short = await made("short");
  const silent = await made("silent");
  await node.names.publish(silent, empty);
  await node.names.publish(short, `/ipns/${silent.id}`, { ttl: 60_000 });
  await node.names.publish(long, `/ipns/${short.id}`, { ttl: 600_000 });
  const ttlOf = async ({ id }: typeof long) => (await node.names.find(`${id}`)).ttlMs;
  assert.deepEqual([await ttlOf(long), await ttlOf(short), await ttlOf(silent)], [60_000, 60_000, undefined]);
});

test("invalid names and names that are not found give different errors", async () => {
  const refusals = {
    "": 'invalid IPNS root: ""',
    "a..b/c": 'invalid IPNS root: "a..b"',
    [nobody]: "could not resolve name",
    bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354:
      "peer ID represented as CIDv1 require libp2p-key multicodec: retry with /ipns/bafzbeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354",
  };
  for (const [name, message] of Object.entries(refusals)) await assert.rejects(node.names.resolve(name), { message });
  assert.deepEqual(await Array.fromAsync(node.names.search(nobody)), []);
});

test("a record that is damaged on disk or expired is ignored", async () => {
  const key = await made("damaged");
  await node.names.publish(key, empty);
  const put = (bytes: Uint8Array) => node.metadata.transaction((writer) => writer.put(publishedKey(key.id), bytes));
  await put(encodeRecord({ ...(await last(key.id)), value: Buffer.from("/ipfs/bafkqaaa") }));
  await assert.rejects(node.names.resolve(key.id.toString()), { message: "could not resolve name" });
  await put(Uint8Array.of(1, 2, 3));
  await assert.rejects(node.names.resolve(key.id.toString()), { message: "could not resolve name" });
  const claim = { value: Buffer.from(empty), validity: formatTimestamp(timestampAfter(-1000)), sequence: 8n, ttl: 0n };
  await put(await signRecord(key, claim));
  await assert.rejects(node.names.resolve(key.id.toString()), { message: "could not resolve name" });
  await node.names.publish(key, "/ipfs/bafkqaaa");
  assert.equal((await last(key.id)).sequence, 9n);
});

test("an old record with a bare multihash resolves to that block", async () => {
  const key = await generateKey({ type: "ed25519" });
  const value = Buffer.from("122059948439065f29619ef41280cbb932be52c56d99c5966b65e0111239f098bbef", "hex");
  const record = decodeRecord(
    await signRecord(key, { value, validity: formatTimestamp(timestampAfter(hour)), sequence: 0n, ttl: 0n }),
  );
  const parts = {
    cache: undefined,
    fixed: new Map(),
    lookUp: async () => [],
    async *records() {
      yield record;
    },
  };
  const [found] = await Array.fromAsync(resolveName(key.id.toString(), parts));
  assert.equal(found?.path, "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
});

test("names from IPFS_NS_MAP take precedence over everything", async (t) => {
  const key = decodeKey((await generateKey({ type: "ed25519" })).bytes);
  process.env.IPFS_NS_MAP = `example.test:${empty},${key.id.toCID()}:/ipns/example.test/x,broken`;
  t.after(() => {
    delete process.env.IPFS_NS_MAP;
  });
  const repo = await mkdtemp(join(tmpdir(), "modhost-names-"));
  const own = await openNode({ repo, offline: true });
  t.after(async () => {
    await own.close();
    await rm(repo, { recursive: true, force: true });
  });
  assert.equal(await own.names.resolve("example.test/a"), `${empty}/a`);
  assert.equal(await own.names.resolve(key.id.toString()), `${empty}/x`);
});
