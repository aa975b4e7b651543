/**
 * Operations that wait for an unresponsive peer delay neither garbage collection nor the close of
 * the node.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { CID } from "multiformats/cid";
import * as operations from "#node/content/mfs/operations.ts";
import { namespacePath } from "#node/content/mfs/path.ts";
import { fileAt, writeFile } from "#node/content/mfs/write_file.ts";
import { linksOf } from "#node/formats/ipld/links.ts";
import { memoryStores, parseCid, readFile } from "#node/index.ts";
import { rootId } from "#node/mount/fuse/wire.ts";
import { IpnsFiles } from "#node/mount/names/ipns_files.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { readUpTo } from "#node/util/async/read_all.ts";

/** The CID of a directory that no peer has. */
const nowhere = parseCid("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG");
const patient = { timeout: 300_000 };
const flushed = { flush: true };
const made = { ...flushed, parents: false, settings: undefined };
const written = { ...made, offset: 0, count: undefined, create: true, truncate: false, rawLeaves: undefined };

/** A node that requests missing blocks from a peer, and the requests that the peer received. */
class Waiting {
  readonly node: LowLevelNode;
  /** A block is requested. */
  readonly requested = Promise.withResolvers<CID>();
  /** After this, the peer responds to all requests. */
  readonly response = Promise.withResolvers<Uint8Array>();

  static async open(t: TestContext): Promise<Waiting> {
    const repo = await mkdtemp(join(tmpdir(), "modhost-closing-"));
    const node = await openNode({ repo, offline: true, stores: async () => memoryStores() });
    const waiting = new Waiting(node);
    t.after(async () => {
      await node.close();
      await rm(repo, { recursive: true });
    });
    return waiting;
  }

  private constructor(node: LowLevelNode) {
    this.node = node;
    node.blocks.source = {
      fetch: (cid, signal) => {
        this.requested.resolve(cid);
        const left = new Promise<never>((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
        );
        return Promise.race([this.response.promise, left]);
      },
    };
  }

  /** The mounted name path. */
  names(): IpnsFiles {
    const { node } = this;
    return new IpnsFiles({
      ...{ metadata: node.metadata, lock: node.lock, blocks: node.blocks, log: node.log, names: node.names },
      sharded: () => false,
      imports: { storesMode: false, storesTime: false },
      reader: (options) => node.reader(options),
      keys: () => node.keys.list(),
      blockAt: async (path, signal) => (await node.resolve(path, { signal })).cid,
      ...{ contents: "/nowhere", disk: tmpdir() },
    });
  }

  /** Publishes content under the node's own name. */
  async publish(path: string): Promise<string> {
    const key = await this.node.names.key("self");
    await this.node.names.publish(key, path, { offline: true });
    return key.id.toString();
  }

  /** Puts a directory whose block is missing into the namespace. */
  async putFar(): Promise<void> {
    await this.node.files.change(flushed, (root) => root.put({ name: "far", cid: nowhere, size: 1 }));
  }

  /** A file of three leaves whose second leaf is missing; returns that leaf. */
  async putFile(content: Uint8Array): Promise<Uint8Array> {
    const { files, blocks } = this.node;
    await writeFile(files, namespacePath("/file"), async () => once(content), written);
    const root = await operations.flush(files, namespacePath("/file"), {});
    const [, second] = linksOf(root, await files.reader({})(root));
    const bytes = await files.reader({})(second as CID);
    await blocks.store.delete([second as CID]);
    return bytes;
  }

  /** Garbage collection completes, and additions meanwhile are not delayed. */
  async collect(): Promise<void> {
    const collecting = Array.fromAsync(this.node.collect());
    (await this.node.lock.acquireShared())();
    await collecting;
  }
}

/** Writes to a file of the node's own name at a position whose block is missing. */
async function writing(t: TestContext) {
  const waiting = await Waiting.open(t);
  const second = await waiting.putFile(bytesFrom(0, 600_000));
  const files = waiting.names();
  const name = await waiting.publish(`/ipfs/${await operations.flush(waiting.node.files, namespacePath("/"), {})}`);
  const { signal } = new AbortController();
  const { id: folder } = await files.lookup(rootId, name, signal);
  const { id } = await files.lookup(folder, "file", signal);
  await files.changes.write(id, 300_000, Buffer.from("changed"));
  await waiting.requested.promise;
  return { waiting, files, file: { id, second } };
}

/** All leaves differ. */
const bytesFrom = (first: number, length: number) => Uint8Array.from({ length }, (_, at) => first + (at >> 16));

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

describe("garbage collection and additions do not wait for a peer that a change waits for", () => {
  const content = bytesFrom(0, 600_000);
  const changes: Record<string, (node: LowLevelNode, signal: AbortSignal) => Promise<unknown>> = {
    "a directory is made": ({ files }, signal) =>
      operations.makeDirectory(files, namespacePath("/far/new"), { ...made, signal }),
    "something is removed": ({ files }, signal) =>
      operations.remove(files, namespacePath("/far/old"), { ...flushed, recursive: true, force: false, signal }),
    "something is copied": ({ files }, signal) => {
      const source = { text: `/ipfs/${nowhere}`, name: "copy", at: nowhere };
      return operations.copy(files, source, namespacePath("/copy"), { ...flushed, signal });
    },
    "something is moved": ({ files }, signal) =>
      operations.move(files, namespacePath("/far/old"), namespacePath("/new"), { ...flushed, signal }),
    "a file is looked for": ({ files }, signal) =>
      writeFile(files, namespacePath("/far/file"), async () => once(content), { ...written, signal }),
    "a file is written": ({ files }, signal) =>
      writeFile(files, namespacePath("/file"), async () => once(content), { ...written, signal }),
  };
  for (const [what, change] of Object.entries(changes)) {
    test(what, patient, async (t) => {
      const waiting = await Waiting.open(t);
      await waiting.putFar();
      await waiting.putFile(content);
      const leaving = new AbortController();
      const changing = change(waiting.node, leaving.signal);
      changing.catch(() => undefined);
      await waiting.requested.promise;
      await waiting.collect();
      leaving.abort(new Error("left"));
      await assert.rejects(changing, /left/);
    });
  }

  test("a file below the name path is written", patient, async (t) => {
    const { waiting, files, file } = await writing(t);
    const release = await waiting.node.lock.acquireExclusive();
    const [root, ...spared] = await files.roots();
    release();
    assert.ok(root !== undefined && spared.length >= 3);
    waiting.response.resolve(file.second);
    await files.changes.settle(file.id, { durable: true });
    await files.close();
  });

  test("an own name is opened", patient, async (t) => {
    const waiting = await Waiting.open(t);
    const files = waiting.names();
    const name = await waiting.publish(`/ipfs/${nowhere}/sub`);
    files.lookup(rootId, name, new AbortController().signal).catch(() => undefined);
    await waiting.requested.promise;
    const release = await waiting.node.lock.acquireExclusive();
    await files.roots();
    release();
    await files.close();
  });
});

test("data written before and after a block from a peer survives a garbage collection", patient, async (t) => {
  const waiting = await Waiting.open(t);
  const second = await waiting.putFile(bytesFrom(0, 600_000));
  const content = bytesFrom(100, 900_000);
  const { files } = waiting.node;
  const writing = writeFile(files, namespacePath("/file"), async () => once(content), written);
  await waiting.requested.promise;
  await waiting.collect();
  waiting.response.resolve(second);
  await writing;
  const { node } = await fileAt(files, namespacePath("/file"), { offline: true });
  assert.deepEqual(await readUpTo(readFile(node, files.reader({ offline: true }))), Buffer.from(content));
});

describe("a mount ends even if a peer never responds", { concurrency: true }, () => {
  test("while an own name is opened", patient, async (t) => {
    const waiting = await Waiting.open(t);
    const files = waiting.names();
    const name = await waiting.publish(`/ipfs/${nowhere}/sub`);
    const finding = files.lookup(rootId, name, new AbortController().signal);
    finding.catch(() => undefined);
    await waiting.requested.promise;
    await files.close();
    await assert.rejects(finding);
  });

  test("while a file is written", patient, async (t) => {
    const { files, file } = await writing(t);
    const settling = files.changes.settle(file.id, { durable: false });
    settling.catch(() => undefined);
    await files.close();
    await assert.rejects(settling);
  });

  test("while a change is published, and another caller has the lock", patient, async (t) => {
    const waiting = await Waiting.open(t);
    const files = waiting.names();
    const { signal } = new AbortController();
    const { id } = await files.lookup(rootId, waiting.node.repo.identity.peerId.toString(), signal);
    await files.changes.makeDirectory(id, "new", signal);
    const release = await waiting.node.lock.acquireExclusive();
    await files.close();
    release();
  });
});
