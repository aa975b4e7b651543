import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CID } from "multiformats/cid";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { encodeDagPb } from "#node/formats/dag_pb/pb_object.ts";
import { encodeUnixfs, type Unixfs } from "#node/formats/unixfs/format.ts";
import { type GatewayHost, startGatewayWith } from "./support.ts";

const RAW = 0x55;
const DAG_PB = 0x70;
const DAG_JSON = 0x0129;
type Link = { readonly Name: string; readonly Hash: CID; readonly Tsize: number };

describe("a gateway with hostile content", () => {
  let host: GatewayHost;
  const cids: Record<string, string> = {};
  before(async () => {
    host = await startGatewayWith(
      async ({ lowLevel: { blocks } }) => {
        const put = async (codec: number, bytes: Uint8Array) => {
          const cid = CID.createV1(codec, await multihash(sha256, bytes));
          await blocks.put([{ cid, bytes }]);
          return cid;
        };
        const node = (unixfs: Unixfs, Links: readonly Link[]) =>
          put(
            DAG_PB,
            encodeDagPb({
              Data: encodeUnixfs(unixfs),
              Links: [...Links].sort((a, b) => Buffer.compare(Buffer.from(a.Name), Buffer.from(b.Name))),
            }),
          );
        const leaf = await put(RAW, new Uint8Array(100).fill(97));
        const link = (Hash: CID, Name = "", Tsize = 100): Link => ({ Name, Hash, Tsize });
        const named = async (name: string, made: Promise<CID>) => void (cids[name] = String(await made));

        // These nodes declare sizes that differ from their content.
        await named("long", node({ type: "File", filesize: 1e6, blocksizes: [1e6] }, [link(leaf)]));
        await named("short", node({ type: "File", filesize: 10, blocksizes: [10] }, [link(leaf)]));
        await named("alone", node({ type: "File", filesize: 2 ** 52, data: new Uint8Array(5) }, []));
        await named(
          "empty",
          node({ type: "File", filesize: 50, blocksizes: [50] }, [link(await put(RAW, new Uint8Array()))]),
        );
        // A file of 100 * 2^33 bytes in few blocks, and a directory whose tree has as many entries.
        let file = leaf;
        let tree = await node({ type: "Directory" }, [link(leaf, "a")]);
        let shard = await node({ type: "HAMTShard", hashType: 0x22, fanout: 256 }, []);
        let nothing = await put(RAW, new Uint8Array());
        let unsized = nothing;
        for (let depth = 1; depth <= 33; depth += 1) {
          const half = 100 * 2 ** (depth - 1);
          file = await node({ type: "File", filesize: half * 2, blocksizes: [half, half] }, [link(file), link(file)]);
          nothing = await node({ type: "File", filesize: half * 2, blocksizes: [half, half] }, [
            link(nothing),
            link(nothing),
          ]);
          unsized = await node({ type: "File", filesize: 100 }, [link(unsized), link(unsized)]);
          tree = await node({ type: "Directory" }, [link(tree, "a"), link(tree, "b")]);
          const slots = Array.from({ length: 64 }, (_, at) => at.toString(16).toUpperCase().padStart(2, "0"));
          shard = await node(
            { type: "HAMTShard", hashType: 0x22, fanout: 256 },
            slots.map((slot) => link(shard, slot)),
          );
        }
        Object.assign(cids, { file: String(file), tree: String(tree), shard: String(shard) });
        Object.assign(cids, { nothing: String(nothing), unsized: String(unsized) });
        let road = leaf;
        for (let depth = 0; depth < 2000; depth += 1) road = await node({ type: "Directory" }, [link(road, "a")]);
        cids.road = String(road);
        await named("nested", put(DAG_JSON, Buffer.from("[".repeat(9000) + "]".repeat(9000))));
        await named("slots", node({ type: "HAMTShard", hashType: 0x22, fanout: 7 }, [link(leaf, "0a")]));
        await named(
          "times",
          node({ type: "Directory" }, [link(leaf, "\u202egnp.exe"), link(leaf, "a\nb"), link(leaf, "..")]),
        );
      },
      { https_ports: [0] },
    );
  });
  after(() => host?.stop());

  const get = (name: string, rest = "", headers: Record<string, string> = {}) =>
    host.ask(`/ipfs/${cids[name]}${rest}`, headers);

  test("a file that is shorter than declared breaks off, and a longer one ends at the declared size", async () => {
    for (const name of ["long", "empty"]) {
      const { status, cut } = await get(name, "?filename=a.bin");
      assert.ok(cut || status >= 400, name);
    }
    assert.deepEqual([(await get("short")).body.length, (await get("short")).cut], [10, false]);
    const alone = await get("alone");
    assert.deepEqual([alone.status, alone.headers["content-length"], alone.cut], [200, "5", false]);
  });

  test("a file that is larger than any disk is served in ranges, and HEAD reports its size", async () => {
    const size = 100 * 2 ** 33;
    const { status, body, headers } = await get("file", "?filename=a.txt", { range: `bytes=${size - 3}-` });
    assert.deepEqual([status, body, headers["content-range"]], [206, "aaa", `bytes ${size - 3}-${size - 1}/${size}`]);
    const head = await host.ask(`/ipfs/${cids.file}`, {}, "HEAD");
    assert.deepEqual([head.status, head.headers["content-length"]], [200, String(size)]);
    const car = await get("file", `?format=car&entity-bytes=${size - 3}:*`);
    assert.ok(car.body.length < 20_000, `${car.body.length}`);
  });

  test("a search for bytes that do not exist ends after 8192 blocks", async () => {
    for (const name of ["nothing", "unsized"]) {
      for (const headers of [{}, { range: "bytes=0-" }]) {
        const { status, body } = await get(name, "?filename=a.bin", headers);
        assert.deepEqual([status, /8192 blocks in a row contain no bytes/.test(body)], [404, true], name);
      }
    }
  });

  test("an archive of a large file that repeats itself has few blocks", async () => {
    const { status, cut, body } = await get("file", "?format=car&entity-bytes=0:*");
    assert.deepEqual([status, cut], [200, false]);
    assert.ok(body.length < 20_000, `${body.length}`);
  });

  test("a path of thousands of segments is served, with headers that clients accept", async () => {
    const { status, headers, body } = await get("road", "/a".repeat(2000));
    assert.deepEqual([status, body.length, headers["x-ipfs-roots"]], [200, 100, undefined]);
    const client = host.client("HTTP/2");
    assert.equal((await client.request(`/ipfs/${cids.road}${"/a".repeat(2000)}`)).bytes.length, 100);
  });

  test("the page of a deeply nested document is not full of indentation", async () => {
    const { status, body } = await get("nested", "/", { accept: "text/html" });
    assert.equal(status, 200);
    assert.ok(body.includes("[[[[") && body.length < 30_000, `${body.length}`);
  });

  test("an archive of a tree with astronomically many paths contains each block once", async () => {
    const { status, cut, body } = await get("tree", "?format=car");
    assert.deepEqual([status, cut], [200, false]);
    assert.ok(body.length < 20_000, `${body.length}`);
    assert.equal((await get("tree", `${"/a".repeat(33)}/a`)).status, 200);
    assert.equal((await get("tree", "/b".repeat(500))).status, 404);
  });

  test("a shard that is linked from everywhere is listed once", async () => {
    for (const rest of ["/", "?format=car&dag-scope=entity"]) {
      const { status, cut, body } = await get("shard", rest);
      assert.deepEqual([status, cut], [200, false], rest);
      assert.ok(body.length < 400_000, `${body.length}`);
    }
    assert.ok([404, 500].includes((await get("slots", "/a")).status));
  });

  test("names with control characters are shown as text and have no effect", async () => {
    const { status, body } = await get("times", "/");
    assert.equal(status, 200);
    assert.equal(body.includes("\u202e"), false);
    const odd = await get("times", "/a%0Ab");
    assert.deepEqual([odd.status, odd.headers["x-ipfs-path"]], [200, `/ipfs/${cids.times}/a%0Ab`]);
    const tar = await get("times", "?format=tar");
    assert.ok(tar.cut || tar.status >= 400);
  });

  test("hostile content causes no errors in the log", () => {
    assert.equal(host.log().includes('"level":"error"'), false, host.log());
  });
});
