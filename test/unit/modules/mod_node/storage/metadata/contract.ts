/** The contract of every metadata store; the test of each implementation runs it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KeyRange, MetadataStore } from "#node/storage/metadata/store.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined): string | undefined => value && new TextDecoder().decode(value);

async function listed(store: MetadataStore, range?: KeyRange): Promise<string[]> {
  const found: string[] = [];
  for await (const [key, value] of store.range(range)) found.push(`${key}=${text(value)}`);
  return found;
}

const fill = (store: MetadataStore, ...keys: string[]) =>
  store.transaction((writer) => {
    for (const key of keys) writer.put(key, bytes(key.toUpperCase()));
  });

const closed = { code: "STORE_CLOSED" };

export function metadataContract(name: string, open: () => Promise<MetadataStore>): void {
  const each = (title: string, run: (store: MetadataStore) => Promise<void>) =>
    test(`${name}: ${title}`, async () => {
      const store = await open();
      try {
        await run(store);
      } finally {
        await store.close();
      }
    });

  each("reads return what a transaction wrote, and the transaction returns its result", async (store) => {
    const response = await store.transaction((writer) => {
      writer.put("a", bytes("1"));
      assert.equal(text(writer.get("a")), "1");
      assert.equal(writer.has("b"), false);
      return 42;
    });
    assert.equal(response, 42);
    assert.equal(text(await store.get("a")), "1");
    assert.equal(await store.has("a"), true);
    assert.equal(await store.get("b"), undefined);
    assert.equal(await store.has("b"), false);
  });

  each("an empty value is a value", async (store) => {
    await store.transaction((writer) => writer.put("empty", new Uint8Array(0)));
    assert.equal((await store.get("empty"))?.length, 0);
    assert.equal(await store.has("empty"), true);
  });

  each("a large value is returned whole", async (store) => {
    const value = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
    await store.transaction((writer) => writer.put("large", value));
    assert.deepEqual(await store.get("large"), value);
  });

  each("the array that was put may be reused", async (store) => {
    const value = bytes("before");
    const done = store.transaction((writer) => writer.put("k", value));
    value.fill(0);
    await done;
    assert.equal(text(await store.get("k")), "before");
  });

  each("a transaction that throws changes nothing", async (store) => {
    await fill(store, "kept");
    await assert.rejects(
      store.transaction((writer) => {
        writer.put("new", bytes("x"));
        writer.delete("kept");
        throw new Error("no");
      }),
      /^Error: no$/,
    );
    assert.deepEqual(await listed(store), ["kept=KEPT"]);
  });

  each("an asynchronous transaction is refused and changes nothing", async (store) => {
    const run = store.transaction(async (writer) => writer.put("x", bytes("x")));
    await assert.rejects(run, TypeError);
    assert.equal(await store.has("x"), false);
  });

  each("delete returns whether the key existed", async (store) => {
    await fill(store, "a");
    const deletedKeys = await store.transaction((writer) => [
      writer.delete("a"),
      writer.delete("a"),
      writer.delete("b"),
    ]);
    assert.deepEqual(deletedKeys, [true, false, false]);
    assert.equal(await store.has("a"), false);
  });

  each("transactions started together run one after the other", async (store) => {
    const count = (): Promise<number> =>
      store.transaction((writer) => {
        const next = Number(text(writer.get("count")) ?? "0") + 1;
        writer.put("count", bytes(String(next)));
        return next;
      });
    const results = await Promise.allSettled([
      count(),
      count(),
      store.transaction((writer) => {
        writer.put("count", bytes("999"));
        throw new Error("no");
      }),
      ...Array.from({ length: 98 }, count),
    ]);
    assert.deepEqual(
      results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
      Array.from({ length: 100 }, (_, at) => at + 1),
    );
    assert.equal(text(await store.get("count")), "100");
  });

  each("ranges are in the order of UTF-8, by prefix, after a key, limited", async (store) => {
    const keys = ["b", "a/2", "a/1", "a", "a/10", "a0", "é", "\u{1f600}", "\uffee"];
    await fill(store, ...keys);
    const plain = async (range?: KeyRange) => {
      const found = (await listed(store, range)).map((entry) => entry.split("=")[0]);
      assert.deepEqual(await store.keys({ limit: 100, ...range }), found, "keys are those of the range");
      return found;
    };
    const ordered = ["a", "a/1", "a/10", "a/2", "a0", "b", "é", "\uffee", "\u{1f600}"];
    assert.deepEqual(await plain(), ordered);
    assert.deepEqual(await plain({ prefix: "a/" }), ["a/1", "a/10", "a/2"]);
    assert.deepEqual(await plain({ prefix: "a/", after: "a/1" }), ["a/10", "a/2"]);
    assert.deepEqual(await plain({ prefix: "a/", after: "a/1", limit: 1 }), ["a/10"]);
    assert.deepEqual(await plain({ after: "a0", limit: 2 }), ["b", "é"]);
    assert.deepEqual(await plain({ after: "A" }), ordered);
    assert.deepEqual(await plain({ prefix: "zz" }), []);
    assert.deepEqual(await plain({ limit: 0 }), []);
  });

  each("a range inside a transaction sees its own changes, in order", async (store) => {
    await fill(store, "p1", "p3", "p5", "q");
    const seen = await store.transaction((writer) => {
      writer.put("p0", bytes("new"));
      writer.put("p3", bytes("changed"));
      writer.put("p4", bytes("new"));
      writer.put("p6", bytes("new"));
      writer.delete("p5");
      const all = [...writer.range({ prefix: "p" })].map(([key, value]) => `${key}=${text(value)}`);
      const some = [...writer.range({ prefix: "p", after: "p1", limit: 2 })].map(([key]) => key);
      return { all, some };
    });
    assert.deepEqual(seen.all, ["p0=new", "p1=P1", "p3=changed", "p4=new", "p6=new"]);
    assert.deepEqual(seen.some, ["p3", "p4"]);
  });

  each("a range is a snapshot, and its iteration may stop early", async (store) => {
    const keys = Array.from({ length: 1000 }, (_, at) => `k${String(at).padStart(4, "0")}`);
    await fill(store, ...keys);
    const view = store.range()[Symbol.asyncIterator]();
    const seen = [(await view.next()).value[0]];
    await store.transaction((writer) => {
      writer.delete("k0500");
      writer.put("k0999x", bytes("late"));
    });
    for (let step = await view.next(); !step.done; step = await view.next()) seen.push(step.value[0]);
    assert.deepEqual(seen, keys);
    assert.equal((await listed(store)).length, 1000);
    for await (const [key] of store.range()) {
      assert.equal(key, "k0000");
      break;
    }
  });

  each("compareAndSet changes a key only if it has the expected value", async (store) => {
    assert.equal(await store.compareAndSet("k", bytes("1"), bytes("2")), false);
    assert.equal(await store.compareAndSet("k", undefined, bytes("1")), true);
    assert.equal(await store.compareAndSet("k", undefined, bytes("2")), false);
    assert.equal(await store.compareAndSet("k", bytes("1"), bytes("2")), true);
    assert.equal(text(await store.get("k")), "2");
    const races = Array.from({ length: 10 }, (_, at) => store.compareAndSet("k", bytes("2"), bytes(`r${at}`)));
    assert.equal((await Promise.all(races)).filter(Boolean).length, 1);
    const stored = await store.get("k");
    assert.equal(await store.compareAndSet("k", stored, undefined), true);
    assert.equal(await store.has("k"), false);
  });

  each("invalid keys are refused without harm", async (store) => {
    for (const key of ["", "x".repeat(1979), "\ud800"]) {
      await assert.rejects(fill(store, "fine", key), /a metadata key is 1 to 1978 bytes/);
      await assert.rejects(store.get(key), /a metadata key is 1 to 1978 bytes/);
    }
    await fill(store, "x".repeat(1978));
    assert.equal(await store.has("fine"), false);
    assert.equal(await store.has("x".repeat(1978)), true);
  });

  each("every call after close is refused, and close may be called again", async (store) => {
    await fill(store, "a", "b");
    const view = store.range()[Symbol.asyncIterator]();
    await view.next();
    const last = fill(store, "c");
    await store.close();
    await last;
    await assert.rejects(store.get("a"), closed);
    await assert.rejects(store.has("a"), closed);
    await assert.rejects(fill(store, "d"), closed);
    await assert.rejects(store.compareAndSet("a", undefined, bytes("1")), closed);
    await assert.rejects(listed(store), closed);
    await assert.rejects(view.next(), closed);
    await store.close();
  });
}
