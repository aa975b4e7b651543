/**
 * The calls of IPFS Cluster 1.1.6 to its node, in the original order, at both levels of the API.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as dagPb from "@ipld/dag-pb";
import type { Libp2p } from "@libp2p/interface";
import { createNode, memoryStores } from "modhost/node";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { blocksIn } from "#test/support/car_blocks.ts";
import { startStranger } from "#test/unit/modules/mod_node/network/swarm/support.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { closing, part, Talk } from "../http/talk.ts";
import { ask, multipart } from "../support.ts";

type Line = Readonly<Record<string, unknown>>;

/** The content that it adds: a file with a dag-pb root and raw leaves, leaves first. */
let blocks: readonly { readonly cid: CID; readonly bytes: Uint8Array }[];
let root: string;
let stranger: Libp2p & AsyncDisposable;
const content = Buffer.alloc(3000, "a file of a cluster ");

before(async () => {
  const repo = await mkdtemp(join(tmpdir(), "modhost-cluster-"));
  const node = await createNode({ repo, offline: true, stores: async () => memoryStores() });
  const { cid } = await node.add(content, { cidVersion: 1, rawLeaves: true, chunker: "size-1024" });
  const pieces = [];
  for await (const piece of node.dag.export(cid)) pieces.push(piece);
  await node.close();
  await rm(repo, { recursive: true, force: true });
  blocks = blocksIn(Buffer.concat(pieces)).reverse();
  root = String(cid);
  stranger = await startStranger();
});
after(() => stranger?.[Symbol.asyncDispose]());

for (const level of ["0.43", "0.9"] as const satisfies readonly LevelName[]) {
  describe(`IPFS Cluster at the level ${level}`, () => {
    let host: RpcHost;
    before(async () => {
      // It presents no token, and may call where other local callers need one.
      const guarded = { api_require_token: true, api_trusted_callers: ["127.0.0.1"] };
      host = await startRpc({ api_level: level, node_offline: false, ...guarded });
    });
    after(() => host?.stop());

    /** Returns lines and error of a call as its connector makes it. */
    async function call(path: string) {
      const { status, body, trailers } = await ask(host.http, path);
      const lines = body.split("\n").filter((line) => line !== "");
      const values = lines.map((line): Line => JSON.parse(line));
      const late = trailers["x-stream-error"];
      return { status, lines: values, message: String(values[0]?.Message ?? ""), late };
    }
    /** Returns the single value of a response. */
    async function value(path: string): Promise<Line> {
      const { status, lines, message } = await call(path);
      assert.deepEqual([status, lines.length], [200, 1], `${path}: ${message}`);
      return lines[0] as Line;
    }

    test("Cluster identifies its node, reads the free space, and connects the node to the nodes of its peers", async () => {
      const id = await value("id");
      assert.equal(typeof id.ID, "string");
      assert.ok((id.Addresses as string[]).every((address) => address.endsWith(`/p2p/${id.ID}`)));
      const address = `${stranger.getMultiaddrs()[0]}`;
      assert.deepEqual(await value(`swarm/connect?arg=${encodeURIComponent(address)}`), {
        Strings: [`connect ${stranger.peerId} success`],
      });
      const { Peers } = await value("swarm/peers");
      assert.deepEqual(
        (Peers as Line[]).map(({ Peer }) => Peer),
        [String(stranger.peerId)],
      );
      assert.equal(typeof ((await value("config/show")) as { Datastore: Line }).Datastore.StorageMax, "string");
      const { RepoSize, StorageMax } = await value("repo/stat?size-only=true");
      assert.deepEqual([typeof RepoSize, typeof StorageMax], ["number", "number"]);
    });

    test("Cluster puts all blocks of an add under the codec of the first, in one body, and reads their keys meanwhile", async () => {
      const path = "block/put?cid-codec=raw&mhtype=sha2-256&mhlen=-1&pin=false&allow-big-block=true";
      assert.deepEqual(
        blocks.map(({ cid }) => cid.code),
        [raw.code, raw.code, raw.code, dagPb.code],
      );
      using talk = new Talk({ way: "HTTP/1.1 in chunks", host, path });
      for (const [at, { cid, bytes }] of blocks.entries()) {
        await talk.write(part(Buffer.from(bytes), at === 0 ? "" : String(cid)));
        await talk.until(at);
      }
      await talk.write(closing);
      talk.end();
      await talk.whole();
      assert.deepEqual(
        talk.lines.map((line) => JSON.parse(line)),
        blocks.map(({ cid, bytes }) => ({ Key: String(CID.createV1(raw.code, cid.multihash)), Size: bytes.length })),
      );
    });

    test("Cluster finds each block under its own CID, whatever codec it was put under", async () => {
      for (const { cid, bytes } of blocks) {
        const { status, body } = await ask(host.http, `block/get?arg=${cid}`);
        assert.deepEqual([status, body], [200, Buffer.from(bytes).toString("utf8")], String(cid));
      }
      assert.deepEqual(await value(`resolve?arg=/ipfs/${root}`), { Path: `/ipfs/${root}` });
    });

    const typesOf = async (query: string) => {
      const { status, lines, late } = await call(`pin/ls?stream=true&${query}`);
      assert.deepEqual([status, late], [200, undefined]);
      return Object.fromEntries(lines.map(({ Cid, Type }) => [Cid, Type]));
    };

    test("Cluster queries a missing pin, and recognizes the end of the message", async () => {
      for (const type of ["recursive", "direct"]) {
        const { status, message } = await call(`pin/ls?stream=true&arg=${root}&type=${type}`);
        assert.equal(status, 500);
        assert.match(message, /not pinned$/);
      }
    });

    test("Cluster pins, and receives the progress", async () => {
      const { status, lines, late } = await call(`pin/add?arg=${root}&recursive=true&progress=true`);
      assert.deepEqual([status, late], [200, undefined]);
      const counts = lines.slice(0, -1).map(({ Progress }) => Progress as number);
      assert.deepEqual(
        counts,
        [...counts].sort((one, other) => one - other),
      );
      assert.deepEqual(lines.at(-1)?.Pins, [root]);
      assert.deepEqual(await typesOf(`arg=${root}&type=recursive`), { [root]: "recursive" });
      assert.equal((await typesOf("type=recursive"))[root], "recursive");
    });

    test("Cluster pins a single block, and pins with a depth that its node ignores", async () => {
      const [{ cid }] = blocks as [(typeof blocks)[number]];
      assert.deepEqual((await value(`pin/add?arg=${cid}&recursive=false`)).Pins, [String(cid)]);
      assert.deepEqual(await typesOf("type=direct"), { [String(cid)]: "direct" });
      assert.deepEqual((await value(`pin/rm?arg=${cid}`)).Pins, [String(cid)]);
      assert.deepEqual((await value(`pin/add?arg=${root}&recursive=true&max-depth=3`)).Pins, [root]);
    });

    test("Cluster moves a pin, and keeps the previous one", async () => {
      const { Hash } = JSON.parse((await ask(host.http, "add?pin=false", multipart([{ content: "another" }]))).body);
      assert.deepEqual((await value(`pin/update?arg=${root}&arg=${Hash}&unpin=false`)).Pins, [root, Hash]);
      const types = await typesOf("type=recursive");
      assert.deepEqual([types[root], types[Hash]], ["recursive", "recursive"]);
      assert.deepEqual((await value(`pin/rm?arg=${Hash}`)).Pins, [Hash]);
    });

    test("Cluster unpins, treats a missing pin as done, and collects garbage", async () => {
      assert.deepEqual((await value(`pin/rm?arg=${root}`)).Pins, [root]);
      const { status, message } = await call(`pin/rm?arg=${root}`);
      assert.deepEqual([status, message], [500, "not pinned or pinned indirectly"]);
      const { lines, late } = await call("repo/gc?stream-errors=true");
      assert.equal(late, undefined);
      assert.deepEqual(
        lines.filter((line) => line.Error),
        [],
      );
      const removed = lines.map(({ Key }) => String(CID.parse((Key as { "/": string })["/"]).toV1().multihash.digest));
      for (const { cid } of blocks) assert.ok(removed.includes(String(cid.multihash.digest)), String(cid));
    });

    test("Cluster forwards calls that others make to its proxy", async () => {
      const headers = { "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Host": "cluster.example:9095" };
      for (const path of ["version", "files/ls", "refs/local", "key/list", "commands"]) {
        assert.equal((await ask(host.http, path, { headers })).status, 200, path);
      }
    });
  });
}
