/** The contract of every object store. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { ObjectStore, Payload, ReadableFile } from "#node/storage/shared/s3/objects.ts";

export type OpenStore = () => Promise<ObjectStore>;

const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
const bytesOf = (value: string) => new TextEncoder().encode(value);

/** A file of the given bytes that returns a limited number of them at a time. */
export function fileOf(content: Uint8Array, most = 1000): ReadableFile {
  return {
    async read([into], at) {
      const piece = content.subarray(at, at + Math.min(most, into?.length ?? 0));
      into?.set(piece);
      return piece.length;
    },
  };
}

export async function readStream(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(body));
}

/** The keys of each test begin with a prefix of its own. */
export function storeContract(name: string, open: OpenStore, options: { skip?: string | false } = {}): void {
  let count = 0;
  const run = (what: string, body: (store: ObjectStore, at: string) => Promise<void>) =>
    test(`${name}: ${what}`, options, async () => {
      const store = await open();
      try {
        await body(store, `t${process.pid}-${(count += 1)}/`);
      } finally {
        await store.close();
      }
    });

  run("an object that was put is read whole and in parts", async (store, at) => {
    const content = Buffer.alloc(300_000, "0123456789");
    const payloads: Record<string, Payload> = {
      bytes: content,
      file: { file: fileOf(Buffer.concat([Buffer.from("xx"), content, Buffer.from("yy")])), start: 2, length: 300_000 },
    };
    for (const [kind, payload] of Object.entries(payloads)) {
      const key = at + kind;
      assert.equal(await store.putNew(key, payload), "written");
      assert.equal(text(await store.read(key, { start: 299_995, length: 5 })), "56789");
      const into = Buffer.alloc(10, "-");
      assert.equal(text(await store.read(key, { start: 3, length: 4 }, { into })), "3456");
      assert.equal(text(into), "3456------");
      const { facts, body } = (await store.stream(key)) ?? assert.fail();
      assert.equal(facts.bytes, 300_000);
      assert.ok((await readStream(body)).equals(content));
      const part = (await store.stream(key, { range: { start: 7, length: 200_001 } })) ?? assert.fail();
      assert.equal(part.facts.bytes, 300_000);
      assert.ok((await readStream(part.body)).equals(content.subarray(7, 200_008)));
      assert.equal((await store.head(key))?.bytes, 300_000);
    }
  });

  run("an object that is put from a file in several pieces has the content of the file", async (store, at) => {
    const content = Buffer.from(Array.from({ length: 400_000 }, (_, at) => `${at} `).join(""));
    const key = `${at}pieces`;
    const sha256 = createHash("sha256").update(content).digest();
    assert.equal(
      await store.putNew(key, { file: fileOf(content), start: 0, length: content.length }, { sha256 }),
      "written",
    );
    const { body } = (await store.stream(key)) ?? assert.fail();
    assert.ok((await readStream(body)).equals(content));
  });

  run("a new object never replaces an existing one", async (store, at) => {
    const key = `${at}seg/1.car`;
    const sha256 = createHash("sha256").update("one").digest();
    assert.equal(await store.putNew(key, bytesOf("one"), { sha256 }), "written");
    assert.equal(await store.putNew(key, bytesOf("one")), "same");
    assert.equal(await store.putNew(key, { file: fileOf(bytesOf("one")), start: 0, length: 3 }), "same");
    assert.equal(await store.putNew(key, bytesOf("two")), "different");
    assert.equal(await store.putNew(key, bytesOf("ones")), "different");
    assert.equal(text(await store.read(key, { start: 0, length: 3 })), "one");
    await store.put(key, bytesOf("three"));
    assert.equal(text(await store.read(key, { start: 0, length: 5 })), "three");
  });

  run("exactly one of several concurrent writers of one key succeeds", async (store, at) => {
    const writers = Array.from({ length: 8 }, (_, index) => store.putNew(`${at}one`, bytesOf(`writer ${index}`)));
    const results = await Promise.all(writers);
    const [winner] = results.flatMap((result, index) => (result === "written" ? [index] : []));
    assert.deepEqual(results.toSorted(), [...Array(7).fill("different"), "written"]);
    assert.equal(text(await store.read(`${at}one`, { start: 0, length: 8 })), `writer ${winner}`);
  });

  run("a missing object is undefined, and one that is too short is an error", async (store, at) => {
    assert.equal(await store.read(`${at}no`, { start: 0, length: 1 }), undefined);
    assert.equal(await store.stream(`${at}no`), undefined);
    assert.equal(await store.head(`${at}no`), undefined);
    await store.put(`${at}short`, bytesOf("short"));
    await assert.rejects(
      store.read(`${at}short`, { start: 2, length: 4 }),
      /has 5 bytes, but bytes 2 to 5 were requested/,
    );
    await assert.rejects(
      store.read(`${at}short`, { start: 9, length: 4 }),
      /has 5 bytes, but bytes 9 to 12 were requested/,
    );
    await assert.rejects(async () => store.stream(`${at}short`, { range: { start: 2, length: 4 } }), /has 5 bytes/);
    assert.equal((await store.read(`${at}short`, { start: 0, length: 0 }))?.length, 0);
  });

  run("empty objects and keys of many kinds are stored and read", async (store, at) => {
    const names = ["empty", "a b", "a+b", "ü/ß", "%41", "(x)!'*", "a&b=c?d#e", '<q "&>', "~._-"];
    for (const name of names) await store.put(at + name, new Uint8Array());
    for (const name of names) assert.equal((await store.head(at + name))?.bytes, 0, name);
    assert.equal((await readStream((await store.stream(`${at}empty`))?.body ?? assert.fail())).length, 0);
    const listed = (await Array.fromAsync(store.list(at))).flat().map(({ key }) => key.slice(at.length));
    assert.deepEqual(listed.toSorted(), names.toSorted());
    await store.delete(names.map((name) => at + name));
    assert.deepEqual(await Array.fromAsync(store.list(at)), []);
  });

  run("a list is in order, can begin after a key, and has no deleted objects", async (store, at) => {
    const names = ["a/1", "a/2", "a/3", "a0", "b/1"];
    await Promise.all(names.map((name) => store.put(at + name, bytesOf(name))));
    const list = async (prefix: string, after?: string) =>
      (await Array.fromAsync(store.list(at + prefix, { after: after && at + after })))
        .flat()
        .map(({ key, bytes }) => `${key.slice(at.length)} ${bytes}`);
    assert.deepEqual(await list(""), ["a/1 3", "a/2 3", "a/3 3", "a0 2", "b/1 3"]);
    assert.deepEqual(await list("a/", "a/1"), ["a/2 3", "a/3 3"]);
    await store.delete([`${at}a/2`, `${at}none`, `${at}a/3`]);
    await store.delete([`${at}b/1`]);
    await store.delete([]);
    assert.deepEqual(await list(""), ["a/1 3", "a0 2"]);
  });

  run("a signal ends a call", async (store, at) => {
    const signal = AbortSignal.abort(new Error("no longer wanted"));
    await assert.rejects(store.put(`${at}x`, bytesOf("x"), { signal }), /no longer wanted/);
    await assert.rejects(store.read(`${at}x`, { start: 0, length: 1 }, { signal }), /no longer wanted/);
    assert.equal(await store.head(`${at}x`), undefined);
  });

  run("the check of the store passes, and its requests are counted", async (store, at) => {
    await store.check();
    const { received } = store.metrics.get;
    await store.put(`${at}x`, bytesOf("12345"));
    await store.read(`${at}x`, { start: 1, length: 3 });
    assert.ok(store.metrics.put.requests >= 1);
    assert.ok(store.metrics.put.sent >= 5);
    assert.equal(store.metrics.get.received, received + 3);
    assert.equal(store.metrics.get.retries, 0);
  });
}
