import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createFactory } from "ipfsd-ctl";
import { create } from "kubo-rpc-client";
import { ownProgram } from "./support.ts";

/**
 * Returns a controller for daemons of this checkout's program. It leaves nothing behind in its
 * folder.
 */
async function controller(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "modhost-ipfsd-"));
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  // The program's first line finds Node through PATH; it must be the version that runs this test.
  const env = { ...inherited, PATH: `${join(process.execPath, "..")}:${process.env.PATH}` };
  const factory = createFactory({ type: "kubo", bin: ownProgram, rpc: create, test: true, disposable: true, env });
  t.after(async () => {
    await factory.clean();
    await rm(folder, { recursive: true });
  });
  return { factory, repo: join(folder, "repo") };
}

test("ipfsd-ctl creates a repo, and starts, uses and stops the daemon as it does with kubo", async (t) => {
  const { factory, repo } = await controller(t);
  const daemon = await factory.spawn({
    type: "kubo",
    repo,
    init: { profiles: ["lowpower"] },
    start: true,
  });
  const { id } = await daemon.api.id();
  const info = await daemon.info();
  assert.deepEqual([info.version, info.peerId, info.repo], ["ipfs version 0.9.0", id.toString(), repo]);
  assert.ok(info.multiaddrs.length > 0);
  assert.match(info.api ?? "", /^\/ip4\/127\.0\.0\.1\/tcp\/\d+$/);
  assert.equal(await daemon.api.config.get("Routing.Type"), "dhtclient");

  const { cid } = await daemon.api.add("hello\n");
  assert.equal(cid.toString(), "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN");
  const pieces: Uint8Array[] = [];
  for await (const piece of daemon.api.cat(cid)) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), "hello\n");

  await daemon.stop();
  assert.equal(existsSync(repo), false);
});

test("ipfsd-ctl restarts a daemon on the repo that it created", async (t) => {
  const { factory, repo } = await controller(t);
  const daemon = await factory.spawn({ type: "kubo", repo, disposable: false, init: true, start: true });
  const { cid } = await daemon.api.add("kept\n");
  await daemon.stop();
  assert.equal(existsSync(join(repo, "api")), false);
  await daemon.start({ offline: true, args: ["--enable-gc"] });
  const found: string[] = [];
  for await (const pin of daemon.api.pin.ls({ type: "recursive" })) found.push(pin.cid.toString());
  assert.ok(found.includes(cid.toString()));
  await daemon.stop();
});
