import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { privateKeyFromProtobuf } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { peerIdEncoder } from "#node/formats/peer_id.ts";
import { openNode } from "#node/node/open.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { KeyFiles } from "#node/storage/keystore/key_files.ts";
import { Keystore } from "#node/storage/keystore/keystore.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host.stop());

const exported = async (name: string) => {
  const url = `http://127.0.0.1:${host.http}/api/v0/key/export?arg=${name}`;
  return fetch(url, { method: "POST", headers: { connection: "close" } });
};

async function imported(query: string, content: Uint8Array) {
  const body = new FormData();
  body.append("file", new Blob([content as Uint8Array<ArrayBuffer>]), "key");
  const url = `http://127.0.0.1:${host.http}/api/v0/key/import?${query}`;
  const response = await fetch(url, { method: "POST", body, headers: { connection: "close" } });
  return (await response.json()) as Record<string, unknown>;
}

test("an exported key loads elsewhere, and importing it restores the same id", async () => {
  for (const type of ["ed25519", "rsa"]) {
    const { Id } = await host.value(`key/gen?arg=out-${type}&type=${type}&ipns-base=b58mh`);
    const response = await exported(`out-${type}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    assert.equal(response.headers.get("x-content-length"), String(bytes.length));
    assert.equal(peerIdFromPrivateKey(privateKeyFromProtobuf(bytes)).toString(), Id);
    assert.deepEqual(await imported(`arg=back-${type}&name-base=v0`, bytes), { Name: `back-${type}`, Id });
  }
  assert.deepEqual(await host.failure("key/export?arg=self"), [500, "cannot export key with name 'self'"]);
  assert.deepEqual(await host.failure("key/export?arg=none"), [500, "key with name 'none' doesn't exist"]);
  const { Message } = await imported("arg=long", new Uint8Array(70_000));
  assert.equal(Message, "the file is longer than 65536 bytes");
});

test("a key is exported as PKCS #8 that OpenSSL reads, and one that OpenSSL made is imported", async () => {
  const { privateKey: foreign } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = foreign.export({ format: "pem", type: "pkcs8" }) as string;
  const { Id } = await host.value("key/gen?arg=pem-secp256k1&type=secp256k1");
  await host.call("key/gen?arg=pem-ed25519");
  await host.call("key/gen?arg=pem-rsa&type=rsa");
  const ecdsa = await imported(
    "arg=pem-ecdsa&allow-any-key-type=true&format=pem-pkcs8-cleartext",
    Buffer.from(`a comment\n${pem}`),
  );
  assert.deepEqual(ecdsa.Name, "pem-ecdsa");
  for (const type of ["secp256k1", "ed25519", "rsa", "ecdsa"]) {
    const text = await (await exported(`pem-${type}&format=pem-pkcs8-cleartext`)).text();
    assert.equal(createPrivateKey(text).export({ format: "pem", type: "pkcs8" }), text);
    const { Keys } = await host.value<{ Keys: { Name: string; Id: string }[] }>("key/list");
    const id = Keys.find(({ Name }) => Name === `pem-${type}`)?.Id;
    const back = await imported(
      `arg=again-${type}&allow-any-key-type=true&format=pem-pkcs8-cleartext`,
      Buffer.from(text),
    );
    assert.deepEqual(back, { Name: `again-${type}`, Id: id });
    if (type === "secp256k1") assert.equal(id, Id);
    if (type === "ecdsa") assert.equal(text, pem);
    await host.call(`key/rm?arg=pem-${type}&arg=again-${type}`);
  }
  assert.deepEqual(await host.failure("key/export?arg=any&format=odd"), [500, "unrecognized export format: odd"]);
  const cut = await imported("arg=cut&format=pem-pkcs8-cleartext", Buffer.from(pem.slice(0, 80)));
  assert.match(String(cut.Message), /^PEM block not found in input data:/);
});

test("the text form lists names only, or ids and names in columns", async () => {
  const text = async (path: string) => (await host.call(`${path}&encoding=text`)).text;
  const id = await text("key/gen?arg=a%0ab");
  assert.match(id, /^k51qzi5uqu5\w+\n$/);
  await host.call("key/gen?arg=c");
  assert.match(await text("key/list?l=false"), /^self\na\\nb\n/);
  assert.ok((await text("key/list?l=true")).includes(`${id.trim()} a\\nb `));
  assert.equal(await text("key/rename?arg=a%0ab&arg=b"), `Key ${id.trim()} renamed to b\n`);
  assert.equal(await text("key/rename?arg=b&arg=c&force=1"), `Key ${id.trim()} renamed to c with overwriting\n`);
  assert.equal(await text("key/rm?arg=c&l=1"), `${id.trim()} c \n`);
});

test("errors have the messages of go-ipfs", async () => {
  await host.call("key/gen?arg=here");
  const cases = {
    "key/gen?arg=": "key name must be at least one character",
    "key/gen?arg=x&type=odd": "unrecognized key type: odd",
    "key/gen?arg=here&type=odd": "key with name 'here' already exists",
    "key/gen?arg=x&type=rsa&size=1024": "rsa keys must be >= 2048 bits to be useful",
    "key/gen?arg=here&ipns-base=nope": "Unsupported multibase encoding: nope",
    "key/list?ipns-base=": "Empty multibase encoding",
    "key/rm?arg=": "no key named  was found",
    "key/rotate": "keystore name for backing up old key must be provided",
    "key/rotate?oldkey=self": "keystore name for back up cannot be named 'self'",
    "key/rotate?oldkey=here": "saving old key in keystore (key by that name already exists, refusing to overwrite)",
    "key/rotate?oldkey=b&size=4": "creating identity (number of key bits does not apply when using ed25519 keys)",
    "key/rotate?oldkey=b&type=odd": "creating identity (unrecognized key type: odd)",
  };
  for (const [call, message] of Object.entries(cases)) assert.deepEqual(await host.failure(call), [500, message]);
  assert.deepEqual(
    (await host.value<{ Keys: { Name: string }[] }>("key/list")).Keys.some(({ Name }) => Name === "b"),
    false,
  );
});

test("rotating keeps the old identity as a key, and the new one applies from the next start on", async () => {
  await using own = await startRpc();
  const { ID } = await own.value("id");
  const rotated = await fetch(`http://127.0.0.1:${own.http}/api/v0/key/rotate?oldkey=old&type=rsa`, {
    method: "POST",
    headers: { connection: "close" },
  });
  const outcome = [rotated.status, rotated.headers.get("content-type"), await rotated.text()];
  assert.deepEqual(outcome, [200, "text/plain", ""]);
  assert.equal((await own.value("id")).ID, ID);
  const { Keys } = await own.value<{ Keys: { Name: string; Id: string }[] }>("key/list?ipns-base=b58mh");
  assert.deepEqual(
    Keys.map(({ Id }) => Id),
    [ID, ID],
  );
  const next = (await own.value("config?arg=Identity.PeerID")).Value;
  assert.match(String(next), /^Qm/);
  await own.host.stop();
  const node = await openNode({ repo: join(own.folder, "data/repo") });
  assert.equal(node.repo.identity.peerId.toString(), next);
  await node.close();
});

const { GO_IPFS: reference } = process.env;

test("go-ipfs and this node read each other's keystore", {
  skip: reference === undefined && "GO_IPFS does not name the program of go-ipfs",
}, async () => {
  const theirs = join(host.folder, "theirs");
  const run = async (...args: string[]) => {
    const env = { ...process.env, IPFS_PATH: theirs };
    return (await promisify(execFile)(reference as string, args, { env })).stdout.trim();
  };
  await run("init", "--profile=test");
  const one = await run("key", "gen", "--type=ed25519", "one");
  const two = await run("key", "gen", "--type=rsa", "two/2");
  const ours = await generateKey({ type: "rsa" });
  const keys = new Keystore(new KeyFiles(join(theirs, "keystore")), ours.id);
  const encode = peerIdEncoder("base36");
  const read = (await keys.list()).map(({ name, id }) => [name, encode(id)]);
  assert.deepEqual(read.slice(1), [
    ["one", one],
    ["two/2", two],
  ]);
  await keys.import("ours", ours.bytes);
  await keys.rename("one", "three", false);
  const listed = await run("key", "list", "-l");
  assert.match(listed, new RegExp(`^${encode(ours.id)} +ours *$`, "m"));
  assert.match(listed, new RegExp(`^${one} +three *$`, "m"));
});
