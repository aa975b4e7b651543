import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import type { NodeModule } from "modhost/node";
import { archive } from "#test/endurance/fuzz/node/material.ts";
import { Random } from "#test/endurance/fuzz/random.ts";
import { announcementListener } from "../announcement_listener.ts";
import { call } from "../faults/lab.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
const listener = announcementListener();
const { roots, blocks, mod_listener } = listener;

before(async () => {
  host = await startRpc({}, { modules: { mod_listener } });
});
after(() => host.stop());

let count = 0;
/** Returns 64 digits that do not repeat. */
const fresh = () =>
  createHash("sha256")
    .update(`${(count += 1)}`)
    .digest("hex");

/** Returns the CIDs of a response, in their order. */
async function cidsOf(path: string, content?: string): Promise<readonly string[]> {
  roots.length = 0;
  blocks.length = 0;
  const { status, text } = await host.call(path, content === undefined ? undefined : { file: content });
  assert.equal(status, 200, `${path}: ${text}`);
  return [...text.matchAll(/"(?:Hash|Key|Cid|Ref|\/)":"([^"/]+)"/g)].map(([, cid]) => cid as string);
}

const storing: Readonly<Record<string, () => string>> = {
  add: fresh,
  "add?pin=false": fresh,
  "block/put": fresh,
  "dag/put": () => JSON.stringify({ a: fresh() }),
  "object/put": () => JSON.stringify({ Data: fresh() }),
};

test("stored content is announced, unless the call may not use the network", async () => {
  for (const [path, content] of Object.entries(storing)) {
    const also = (option: string) => `${path}${path.includes("?") ? "&" : "?"}${option}`;
    const made = await cidsOf(path, content());
    assert.deepEqual([roots, blocks], [made, made], path);
    for (const option of ["offline=true", "local=true"]) {
      await cidsOf(also(option), content());
      assert.deepEqual([roots, blocks], [[], []], also(option));
    }
  }
  await cidsOf("add?only-hash=true", fresh());
  assert.deepEqual([roots, blocks], [[], []]);
});

test("an add that waits for its announcement fails after its lines if there are no peers", async () => {
  const waits = async (query: string) => {
    const { status, values, message } = await call(host, `add?fast-provide-wait=true${query}`, fresh());
    assert.deepEqual([status, values.length], [200, 1]);
    return message;
  };
  assert.equal(await waits(""), undefined, "a node that is offline tells nobody");
  listener.online = true;
  try {
    assert.equal(await waits(""), "fast-provide: failed to find any peer in table");
    for (const query of ["&offline=true", "&only-hash=true", "&fast-provide-root=false"]) {
      assert.equal(await waits(query), undefined, query);
    }
  } finally {
    listener.online = false;
  }
});

test("the log says whether an add announces, waits or does neither, and why", async () => {
  const { log, repo } = host.host.exports<NodeModule>("node").lowLevel;
  log.setLevel("core/commands", "debug");
  const lines: string[] = [];
  const unlisten = log.listen(({ message }) => lines.push(message.replace(/^fast-provide-root: /, "")));
  const logged = async (query: string) => {
    lines.length = 0;
    await call(host, `add?${query}`, fresh());
    return [...lines];
  };
  try {
    assert.deepEqual(await logged(""), ["enabled, wait=false", "skipped: DHT not available"]);
    assert.deepEqual(await logged("fast-provide-root=false"), ["skipped: disabled by flag or config"]);
    assert.deepEqual(await logged("fast-provide-root=false&fast-provide-wait=true"), [
      "skipped: disabled by flag or config",
      "wait-flag-ignored",
    ]);
    listener.online = true;
    assert.deepEqual(await logged(""), ["enabled, wait=false", "providing asynchronously"]);
    assert.deepEqual(await logged("fast-provide-wait=true"), [
      "enabled, wait=true",
      "providing synchronously",
      "sync provide failed: failed to find any peer in table",
    ]);
    await repo.config.set("Experimental.StrategicProviding", () => true);
    assert.deepEqual(await logged(""), ["enabled, wait=false", "skipped: Provide.Enabled is false"]);
  } finally {
    listener.online = false;
    await repo.config.set("Experimental.StrategicProviding", () => false);
    unlisten();
    log.setLevel("core/commands", "error");
  }
});

test("an add leaves its root to the next round if requested", async () => {
  await cidsOf("add?fast-provide-root=false", fresh());
  assert.deepEqual(roots, []);
  const made = await cidsOf("add?fast-provide-root=false&fast-provide-dag=true", fresh());
  assert.deepEqual(roots, made);
});

test("a pin that waits for its announcement fails if there are no peers, and a pin without announcement succeeds", async () => {
  const added = async () => (await cidsOf("add?pin=false", fresh()))[0] ?? "";
  const pinned = async () => (await cidsOf("add", fresh()))[0] ?? "";
  for (const path of ["pin/add?", "pin/update?unpin=false&"]) {
    /** Returns a call with an unpinned object as its last argument. */
    const made = async (options: string) => {
      const from = path.startsWith("pin/update") ? `arg=${await pinned()}&` : "";
      const cid = await added();
      return { cid, target: `${path}${from}arg=${cid}&${options}` };
    };
    await cidsOf((await made("fast-provide-root=false")).target);
    assert.deepEqual(roots, [], path);
    const { cid, target } = await made("fast-provide-root=false&fast-provide-dag=true");
    await cidsOf(target);
    assert.deepEqual(roots, [cid], path);
    await cidsOf((await made("fast-provide-wait=true")).target);
    const waiting = await made("fast-provide-wait=true");
    const muted = await made("fast-provide-wait=true&offline=true");
    listener.online = true;
    try {
      assert.deepEqual(await host.failure(waiting.target), [500, "fast-provide: failed to find any peer in table"]);
      assert.equal((await host.call(muted.target)).status, 200);
    } finally {
      listener.online = false;
    }
  }
});

test("an import that waits for the announcement of its roots fails if there are no peers", async () => {
  const [cid] = await cidsOf("add", fresh());
  const archive = { file: Buffer.from(await host.bytes(`dag/export?arg=${cid}`)) };
  roots.length = 0;
  assert.equal((await host.call("dag/import?fast-provide-root=false", archive)).status, 200);
  assert.deepEqual(roots, []);
  assert.equal((await host.call("dag/import?fast-provide-dag=true", archive)).status, 200);
  assert.deepEqual(roots.splice(0).map(String), [cid]);
  listener.online = true;
  try {
    const { message } = await call(host, "dag/import?fast-provide-wait=true&fast-provide-root=true", archive.file);
    assert.equal(message, "fast-provide: failed to find any peer in table");
  } finally {
    listener.online = false;
  }
});

test("each new block of a file is announced, and its root as a root", async () => {
  for (const also of ["", "&raw-leaves=true", "&trickle=true", "&wrap-with-directory=true"]) {
    const root = (await cidsOf(`add?chunker=size-10${also}`, fresh())).at(-1) as string;
    const received = blocks.toSorted();
    assert.deepEqual(roots, [root], also);
    assert.deepEqual(
      received,
      [root, ...(await cidsOf(`refs?recursive=true&unique=true&arg=${root}`))].toSorted(),
      also,
    );
  }
});

test("stored content is not announced again, except for roots of add and pins", async () => {
  for (const [path, content] of Object.entries(storing)) {
    const text = content();
    const made = await cidsOf(`${path}${path.includes("?") ? "&" : "?"}offline=true`, text);
    await cidsOf(path, text);
    assert.deepEqual([roots, blocks], [path.startsWith("add") ? made : [], []], path);
  }
});

test("a pin is announced unless the call may not use the network", async () => {
  const add = async () => (await cidsOf("add?pin=false&offline=true&chunker=size-10", fresh())).at(-1) as string;
  for (const also of ["", "&recursive=false"]) {
    const cid = await add();
    await cidsOf(`pin/add?arg=${cid}${also}`);
    assert.deepEqual([roots, blocks], [[cid], []]);
  }
  await cidsOf(`pin/add?arg=${await add()}&offline=true`);
  assert.deepEqual([roots, blocks], [[], []]);
  const before = await add();
  const after = await add();
  await cidsOf(`pin/add?arg=${before}&offline=true`);
  await cidsOf(`pin/update?arg=${before}&arg=${after}`);
  assert.deepEqual([roots, blocks], [[], []]);
});

test("object commands announce each new block", async () => {
  const [base] = await cidsOf("object/put?offline=true", JSON.stringify({ Data: fresh() }));
  for (const path of [`object/patch/append-data?arg=${base}`, `object/patch/set-data?arg=${base}`]) {
    const [made] = await cidsOf(path, fresh());
    assert.deepEqual([roots, blocks], [[made], [made]], path);
    await cidsOf(`${path}&offline=true`, fresh());
    assert.deepEqual([roots, blocks], [[], []], path);
  }
  const [made] = await cidsOf(`object/patch/add-link?create=true&arg=${base}&arg=a/b&arg=${base}`);
  assert.deepEqual(roots, [made]);
  assert.equal(blocks.length, 2, "the new directory and the node itself");
});

test("files commands announce each new block, even if the call may not use the network", async () => {
  for (const also of ["", "&offline=true", "&flush=false"]) {
    const path = `/${(count += 1)}`;
    await cidsOf(`files/write?create=true&raw-leaves=true&cid-version=1${also}&arg=${path}`, fresh());
    const received = [...blocks];
    const [cid] = await cidsOf(`files/stat?arg=${path}`);
    assert.ok([...received, ...blocks].includes(cid as string), also);
    assert.deepEqual(roots, []);
  }
  await cidsOf("files/mkdir?cid-version=1&hash=sha2-512&arg=/new");
  const made = [...blocks];
  const [folder] = await cidsOf("files/stat?arg=/new");
  assert.ok([...made, ...blocks].includes(folder as string));
  const [root] = await cidsOf("files/stat?arg=/");
  const [copied] = await cidsOf("add?offline=true&pin=false", fresh());
  await cidsOf(`files/cp?arg=/ipfs/${copied}&arg=/copied`);
  const received = [...blocks];
  const [changed] = await cidsOf("files/stat?arg=/");
  assert.notEqual(changed, root);
  assert.deepEqual([...received, ...blocks], [changed]);
});

test("archives are left to the reprovider, as in go-ipfs", async () => {
  const { bytes } = await archive(new Random(1));
  roots.length = 0;
  blocks.length = 0;
  const body = new FormData();
  body.append("file", new File([new Uint8Array(bytes)], "a.car"));
  const url = `http://127.0.0.1:${host.http}/api/v0/dag/import`;
  const reply = await fetch(url, { method: "POST", body, headers: { connection: "close" } });
  assert.match(await reply.text(), /"PinErrorMsg":""/);
  assert.deepEqual([roots, blocks], [[], []]);
});
