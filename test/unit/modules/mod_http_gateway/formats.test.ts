import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { blocksIn } from "#test/support/car_blocks.ts";
import { type GatewayHost, startGatewayWith } from "./support.ts";

describe("content in different formats", () => {
  let host: GatewayHost;
  const cids = { tree: "", file: "", cbor: "", evil: "" };
  before(async () => {
    host = await startGatewayWith(async (node) => {
      const files = [{ path: "tree/a.txt", content: "in a" }];
      for await (const { path, cid } of node.addAll(files, { cidVersion: 1 })) {
        if (path === "tree") cids.tree = String(cid);
        else cids.file = String(cid);
      }
      const file = (await node.add("<script>", { cidVersion: 1 })).cid;
      cids.cbor = String(await node.dag.put({ file, text: "<script>alert(1)</script>" }));
    });
  });
  after(() => host?.stop());

  test("an archive has a different Etag for each requested part, order and path", async () => {
    const tagOf = async (query: string, path = "") =>
      (await host.ask(`/ipfs/${cids.tree}${path}?format=car${query}`)).headers.etag;
    const queries = [
      "",
      "&dag-scope=entity",
      "&dag-scope=block",
      "&entity-bytes=0:1",
      "&entity-bytes=0:*",
      "&car-dups=y",
      "&car-order=unk",
    ];
    const tags = [...(await Promise.all(queries.map((query) => tagOf(query)))), await tagOf("", "/a.txt")];
    assert.equal(new Set(tags).size, tags.length, tags.join("\n"));
    assert.ok(tags.every((tag) => tag?.startsWith(`W/"${cids.tree}.car.`)));
    assert.equal(await tagOf(""), tags[0]);
  });

  test("a range without a scope has the scope entity", async () => {
    const alone = await host.ask(`/ipfs/${cids.tree}?format=car&entity-bytes=0:*`);
    const entity = await host.ask(`/ipfs/${cids.tree}?format=car&dag-scope=entity`);
    const all = await host.ask(`/ipfs/${cids.tree}?format=car`);
    assert.equal(alone.body, entity.body);
    assert.ok(all.body.length > alone.body.length);
  });

  test("an archive of a missing root is 404, for GET and HEAD", async () => {
    const missing = "/ipfs/bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e?format=car";
    for (const method of ["GET", "HEAD"]) assert.equal((await host.ask(missing, {}, method)).status, 404, method);
  });

  test("an archive of a path that does not exist contains the blocks that prove it", async () => {
    for (const scope of ["all", "entity", "block"]) {
      const path = `/ipfs/${cids.tree}/absent/x?format=car&dag-scope=${scope}`;
      const response = await fetch(`http://127.0.0.1:${host.http}${path}`);
      assert.deepEqual([response.status, response.headers.get("x-ipfs-roots")], [200, cids.tree], scope);
      const blocks = blocksIn(await response.bytes());
      assert.deepEqual(
        blocks.map(({ cid }) => String(cid)),
        [cids.tree],
        scope,
      );
    }
    const other = await host.ask(`/ipfs/${cids.tree}/absent?format=raw`);
    assert.equal(other.status, 404);
  });

  test("unknown parameters of an archive are 400", async () => {
    for (const query of [
      "car-version=2",
      "car-order=bfs",
      "car-dups=maybe",
      "dag-scope=some",
      "entity-bytes=5",
      "entity-bytes=10:5",
      "entity-bytes=",
      "entity-bytes=a:b",
      "entity-bytes=-1:-5",
    ]) {
      assert.equal((await host.ask(`/ipfs/${cids.tree}?format=car&${query}`)).status, 400, query);
    }
  });

  test("only files and directories can be sent as tar, and no codec is converted", async () => {
    for (const query of ["tar", "dag-json", "json"]) {
      const { status, body } = await host.ask(`/ipfs/${cids.cbor}?format=${query}`);
      assert.deepEqual([status, /raw/.test(body)], [406, true], query);
    }
    for (const query of ["dag-json", "dag-cbor"]) {
      assert.equal((await host.ask(`/ipfs/${cids.file}?format=${query}`)).status, 406, query);
    }
  });

  test("a response that Accept has chosen varies by Accept, and names its own URL", async () => {
    const { headers } = await host.ask(`/ipfs/${cids.file}?b=2&a=1`, { accept: "application/vnd.ipld.raw" });
    assert.equal(headers.vary, "Accept");
    assert.equal(headers["content-location"], `/ipfs/${cids.file}?a=1&b=2&format=raw`);
    const plain = await host.ask(`/ipfs/${cids.file}?format=raw`, { accept: "application/vnd.ipld.raw" });
    assert.deepEqual([plain.headers["content-location"], plain.headers.vary], [undefined, undefined]);
  });

  test("browsers get a document as a page in which no script runs", async () => {
    const browser = { accept: "text/html,*/*;q=0.8" };
    const redirect = await host.ask(`/ipfs/${cids.cbor}`, browser);
    assert.deepEqual([redirect.status, redirect.headers.location], [301, `/ipfs/${cids.cbor}/`]);
    const { headers, body } = await host.ask(`/ipfs/${cids.cbor}/`, browser);
    assert.equal(headers["content-type"], "text/html");
    assert.match(String(headers["content-security-policy"]), /default-src 'none'/);
    assert.equal(body.includes("<script>"), false);
    assert.ok(body.includes("&#60;script&#62;alert(1)"), body);
    const saved = await host.ask(`/ipfs/${cids.cbor}/?download=true`, browser);
    assert.match(String(saved.headers["content-disposition"]), /^attachment; filename=".*\.cbor"/);
  });

  test("a path that ends at a value in a document is 501, its block can be fetched, and a missing field is 404", async () => {
    const value = await host.ask(`/ipfs/${cids.cbor}/text`);
    assert.deepEqual([value.status, /the rest of the path, text,/.test(value.body)], [501, true]);
    assert.equal((await host.ask(`/ipfs/${cids.cbor}/none`)).status, 404);
    const block = await host.ask(`/ipfs/${cids.cbor}/text?format=raw`);
    assert.deepEqual([block.status, block.headers.etag], [200, `"${cids.cbor}.raw"`]);
    assert.equal((await host.ask(`/ipfs/${cids.cbor}/file`)).body, "<script>");
  });
});
