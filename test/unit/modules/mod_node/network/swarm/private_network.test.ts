import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { decodeSwarmKey, readSwarmKey } from "#node/network/swarm/private_network.ts";
import { connectTo, type PeerSetup, startPeer } from "./support.ts";

const key = randomBytes(32);
const file = (encoding: string, content: string | Buffer) =>
  Buffer.concat([Buffer.from(`/key/swarm/psk/1.0.0/\n/${encoding}/\n`), Buffer.from(content)]);

test("the key is read in each of its encodings", () => {
  for (const bytes of [
    file("base16", key.toString("hex")),
    file("base16", `${key.toString("hex")}\n`),
    file("base64", key.toString("base64")),
    file("bin", key),
  ]) {
    assert.deepEqual(Buffer.from(decodeSwarmKey(bytes)), key);
  }
});

test("an invalid key file is refused", () => {
  assert.throws(() => decodeSwarmKey(Buffer.from("x")), /does not begin with \/key\/swarm\/psk\/1\.0\.0\//);
  assert.throws(() => decodeSwarmKey(file("base58", "x")), /unknown encoding of the swarm key: \/base58\//);
  assert.throws(() => decodeSwarmKey(file("base16", "0011")), /not 32 bytes long/);
});

test("a key can be enforced by the environment", async () => {
  process.env.LIBP2P_FORCE_PNET = "1";
  try {
    await assert.rejects(readSwarmKey("/nowhere"), {
      message: "privnet: private network was not configured but is enforced by the environment",
    });
  } finally {
    delete process.env.LIBP2P_FORCE_PNET;
  }
  assert.equal(await readSwarmKey("/nowhere"), undefined);
});

test("only nodes with the same key connect", async () => {
  const withKey = (bytes: Buffer): PeerSetup => ({
    prepare: ({ path }) => writeFile(join(path, "swarm.key"), file("base16", bytes.toString("hex"))),
  });
  await using a = await startPeer(withKey(key));
  await using b = await startPeer(withKey(key));
  await using other = await startPeer(withKey(randomBytes(32)));
  await using open = await startPeer();
  await connectTo(a, b);
  await assert.rejects(connectTo(other, a), /failed to dial/);
  await assert.rejects(connectTo(open, a), /failed to dial/);
  assert.equal(a.swarm.connections().length, 1);
});
