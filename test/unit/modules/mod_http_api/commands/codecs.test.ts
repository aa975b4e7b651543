/** Nodes and blocks in the codecs of Kubo 0.43, at both levels. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

const FILE = "bafkreigtpkiih7wr7wb7ts6j5aunnotxiff3yqkx33rs4k4xhskprx5tua";

/** An archive with the blocks "hello", its root, and "world". */
const archive = Buffer.from(
  "3aa265726f6f747381d82a582500015512202cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b98246776657273" +
    "696f6e0129015512202cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b982468656c6c6f2901551220486ea462" +
    "24d1bb4fb680f34f7c9ad96a8f24ec88be73ea8e5a6c65260e9cb8a7776f726c64",
  "hex",
);
/**
 * The same archive as version 2: pragma, flags, offsets of the payload and of an index, padding,
 * payload, index.
 */
const archiveOfVersion2 = Buffer.concat([
  Buffer.from("0aa16776657273696f6e02", "hex"),
  Buffer.alloc(16),
  new Uint8Array(BigUint64Array.of(61n, BigInt(archive.length), 61n + BigInt(archive.length)).buffer),
  Buffer.alloc(10),
  archive,
  Buffer.alloc(50, 0x81),
]);
const importedText =
  '{"Root":{"Cid":{"/":"bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"},"PinErrorMsg":""}}\n';

describe("at the level 0.43", () => {
  let host: RpcHost;
  before(async () => {
    host = await startRpc({ api_level: "0.43" });
  });
  after(() => host?.stop());

  const put = async (query: string, node: string) => {
    const { lines } = await host.call(`dag/put?${query}`, { node });
    return (lines[0] as { Cid: Record<string, string> }).Cid["/"] as string;
  };
  const get = async (path: string, codec = "dag-json") => {
    const { text } = await host.call(`dag/get?arg=${path}&output-codec=${codec}`);
    return text;
  };

  test("archives of version 2 are imported and pinned, and exported as version 1", async () => {
    const { status, text } = await host.call("dag/import?stats=true", { car: archiveOfVersion2 });
    assert.deepEqual([status, text], [200, `${importedText}{"Stats":{"BlockCount":2,"BlockBytesCount":10}}\n`]);
    assert.equal((await host.call("dag/import", { one: archive, two: archiveOfVersion2 })).text, importedText);
    const [, message] = await host.failure("dag/import", { car: archiveOfVersion2.subarray(0, 55) });
    assert.equal(message, "unexpected EOF");
  });

  test("a value survives a round trip through every codec that can represent it", async () => {
    const node = '{"a":[1,-2,1.5,null,true],"b":{"/":{"bytes":"aGVsbG8"}},"t":"ü"}';
    for (const codec of ["dag-cbor", "dag-json"])
      assert.equal(await get(await put(`store-codec=${codec}`, node)), node);
    const plain = '{"a":[1,-2,1.5,null,true],"t":"ü"}';
    for (const codec of ["cbor", "json"]) assert.equal(await get(await put(`store-codec=${codec}`, plain)), plain);
    assert.equal(
      await get(await put("", plain), "json"),
      '{\n\t"a": [\n\t\t1,\n\t\t-2,\n\t\t1.5,\n\t\tnull,\n\t\ttrue\n\t],\n\t"t": "ü"\n}\n',
    );
    const raw = await put("store-codec=raw", '{"/":{"bytes":"aGVsbG8"}}');
    assert.equal(await get(raw), '{"/":{"bytes":"aGVsbG8"}}');
    assert.equal(await get(raw, "raw"), "hello");
  });

  test("a value that a codec cannot represent is an error that says so", async () => {
    const cid = await put("", '{"l":{"/":"bafkqaaa"},"b":{"/":{"bytes":"AA"}}}');
    for (const [codec, message] of [
      ["json", /cannot encode links/],
      ["cbor", /cannot encode links/],
      ["raw", /only bytes/],
      ["dag-pb", /./],
      ["odd", /unknown multicodec: "odd"/],
    ] as const) {
      const [status, text] = await host.failure(`dag/get?arg=${cid}&output-codec=${codec}`);
      assert.equal(status, 500, codec);
      assert.match(String(text), message);
    }
    assert.deepEqual(await host.failure(`dag/get?arg=${cid}/x`), [500, 'key not found: "x"']);
  });

  test("a CID inlines at most 128 bytes of a block", async () => {
    const refused = [500, "digest too large: identity digest got 129 bytes, maximum 128"];
    assert.deepEqual(await host.failure("block/put?mhtype=identity", { data: "x".repeat(129) }), refused);
    assert.equal((await host.call("block/put?mhtype=identity", { data: "x".repeat(128) })).status, 200);
    // JSON adds two quotes to a text.
    const node = `"${"x".repeat(127)}"`;
    assert.deepEqual(await host.failure("dag/put?hash=identity&store-codec=dag-json", { node }), refused);
  });

  test("a block over 2 MiB needs allow-big-block", async () => {
    const big = { data: "x".repeat(2 * 1024 * 1024 + 1) };
    const [status, text] = await host.failure("block/put", big);
    assert.equal(status, 500);
    assert.match(String(text), /^produced block is over 2MiB/);
    const { lines, status: taken } = await host.call("block/put?allow-big-block=true", big);
    assert.equal(taken, 200);
    const { Key } = lines[0] as { Key: string };
    const archive = { car: await host.bytes(`dag/export?arg=${Key}`) };
    const [refused, reason] = await host.failure("dag/import", archive);
    assert.equal(refused, 500);
    assert.match(String(reason), new RegExp(`^import failed at block "${Key}": produced block is over 2MiB`));
    assert.equal((await host.call("dag/import?allow-big-block=true", archive)).status, 200);
  });

  test("a patch makes a directory over 2 MiB only with allow-big-block", async () => {
    const name = "n".repeat(1024);
    const links = Array.from({ length: 2000 }, (_, at) => ({
      Name: `${at}`.padStart(8, "0") + name,
      Hash: FILE,
      Tsize: 1,
    }));
    const node = JSON.stringify({
      Data: { "/": { bytes: "CAE" } },
      Links: links.map(({ Name, Hash, Tsize }) => ({ Hash: { "/": Hash }, Name, Tsize })),
    });
    const put = await host.call("dag/put?store-codec=dag-pb&allow-big-block=true", { node });
    const { "/": root } = (put.lines[0] as { Cid: { "/": string } }).Cid;
    const { Key: file } = (await host.call("block/put", { data: "x" })).lines[0] as { Key: string };
    const add = `object/patch/add-link?arg=${root}&arg=x&arg=${file}`;
    const remove = `object/patch/rm-link?arg=${root}&arg=${links[0]?.Name}`;
    for (const call of [add, remove]) {
      assert.match(String((await host.failure(call))[1]), /^produced block is over 2MiB/);
      assert.equal((await host.call(`${call}&allow-big-block=true`)).status, 200);
    }
  });
});
