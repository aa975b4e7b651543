import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CID } from "multiformats/cid";
import type { NodeModule } from "#node/index.ts";
import { byteText } from "#node/util/byte_text.ts";
import { failure } from "#node/util/errors.ts";
import { type GatewayHost, startGatewayWith } from "./support.ts";

const CHUNK = 262_144;
/** Returns a name with these bytes. */
const latin = (bytes: string) => byteText(Buffer.from(bytes, "latin1"));
/** The content of a file of three leaves. */
const large = Buffer.alloc(CHUNK * 2 + 1000).map((_, at) => at % 251);

describe("the path gateway", () => {
  let host: GatewayHost;
  let site = "";
  let film = "";
  let holey = "";
  /** An HTML page of more than one leaf, whose name does not show its type. */
  let long = "";
  before(async () => {
    host = await startGatewayWith(async (node) => {
      const files = [
        { path: "site/sub/a.txt", content: "in sub" },
        { path: "site/sub/<b>&.txt", content: "a name that is markup" },
        { path: "site/empty.txt", content: "" },
        { path: "site/page", content: "<!doctype html><p>page" },
        { path: `site/latin/${latin("caf\xe8")}`, content: "one" },
        { path: `site/latin/${latin("caf\xe9")}`, content: "two" },
        { path: "site/latin/caf%E9", content: "a percent sign" },
        { path: `site/latin/${latin("d\xff")}/x`, content: "below" },
      ];
      for await (const { path, cid } of node.addAll(files, { cidVersion: 1 })) if (path === "site") site = String(cid);
      long = String((await node.add(`<!doctype html>${"a".repeat(CHUNK * 2)}`)).cid);
      film = String((await node.add(large, { cidVersion: 1, rawLeaves: true })).cid);
      const made = await node.add(Buffer.from(large.map((byte) => byte ^ 1)), { cidVersion: 1, rawLeaves: true });
      holey = String(made.cid);
      const { Links } = await node.object.links(made.cid).then((links) => ({ Links: links }));
      const second = CID.asCID(Links[1]?.Hash) as CID;
      await node.lowLevel.blocks.store.delete([second]);
    });
  });
  after(() => host?.stop());

  test("several ranges are sent in the requested order", async () => {
    const { status, headers, body } = await host.ask(`/ipfs/${site}/sub/a.txt`, { range: "bytes=3-5,0-1" });
    assert.equal(status, 206);
    assert.match(headers["content-type"] ?? "", /^multipart\/byteranges; boundary=/);
    assert.equal(Number(headers["content-length"]), Buffer.byteLength(body));
    const parts = [...body.matchAll(/Content-Range: (bytes [^\r]+)\r\n\r\n([^\r]*)/g)].map(([, range, text]) => [
      range,
      text,
    ]);
    assert.deepEqual(parts, [
      ["bytes 3-5/6", "sub"],
      ["bytes 0-1/6", "in"],
    ]);
  });

  test("a request for /ipfs/ alone gets a page that explains the addresses", async () => {
    const { status, body } = await host.ask("/ipfs/", { accept: "text/html" });
    assert.deepEqual([status, /<p>[^<]*\/ipfs\/CID or \/ipns\/NAME/.test(body)], [400, true]);
  });

  test("names that are not UTF-8 keep their bytes in paths, listings, redirects and headers of errors", async () => {
    for (const [name, content] of [
      ["caf%E8", "one"],
      ["caf%e9", "two"],
      ["caf%25E9", "a percent sign"],
      ["d%FF/x", "below"],
    ]) {
      assert.equal((await host.ask(`/ipfs/${site}/latin/${name}`)).body, content, name);
    }
    assert.equal((await host.ask(`/ipfs/${site}/latin/caf%EF`)).status, 404);
    const { headers } = await host.ask(`/ipfs/${site}/latin/caf%E9`);
    assert.equal(headers["x-ipfs-path"], `/ipfs/${site}/latin/caf\xe9`);
    for (const [name, bytes] of [
      ["none%E9", "none\xe9"],
      ["none%C3%A9", "none\xc3\xa9"],
    ]) {
      const absent = await host.ask(`/ipfs/${site}/latin/${name}`);
      assert.deepEqual([absent.status, absent.headers["x-ipfs-path"]], [404, `/ipfs/${site}/latin/${bytes}`]);
    }
    const folder = await host.ask(`/ipfs/${site}/latin/d%FF`);
    assert.deepEqual([folder.status, folder.headers.location], [301, `/ipfs/${site}/latin/d%FF/`]);
    const { body } = await host.ask(`/ipfs/${site}/latin/`, { accept: "text/html" });
    for (const name of ["caf%E8", "caf%E9", "caf%25E9", "d%FF"]) assert.ok(body.includes(`/latin/${name}`), name);
  });

  test("a suffix range that is longer than the file returns the whole file", async () => {
    const { status, headers, body } = await host.ask(`/ipfs/${site}/sub/a.txt`, { range: "bytes=-9000" });
    assert.deepEqual([status, headers["content-range"], body], [206, "bytes 0-5/6", "in sub"]);
  });

  test("a range of a large file only needs its own blocks, and a missing block breaks the response off", async () => {
    const at = (from: number, to: number) =>
      host.ask(`/ipfs/${holey}?filename=a.bin`, { range: `bytes=${from}-${to}` });
    assert.equal((await at(0, 9)).status, 206);
    assert.equal((await at(CHUNK * 2, CHUNK * 2 + 9)).body.length > 0, true);
    const within = await at(CHUNK, CHUNK + 9);
    assert.deepEqual(
      [within.status, within.body],
      [
        404,
        `failed to resolve /ipfs/${holey}: merkledag: not found on this server, which does not fetch from others\n`,
      ],
    );
    // Short ranges are read before the response begins.
    for (const before of [10, 100 * 1024]) {
      const over = await at(CHUNK - before, CHUNK + 9);
      assert.deepEqual([over.status, over.cut, over.body.length > 0], [206, true, true]);
    }
    assert.equal(host.log().includes('"level":"error"'), false, host.log());
  });

  test("HEAD has the same headers as GET, including a type that only the content shows", async () => {
    for (const path of [`/ipfs/${film}`, `/ipfs/${site}/page`, `/ipfs/${site}/sub/`, `/ipfs/${site}/empty.txt`]) {
      const get = await host.ask(path);
      const head = await host.ask(path, {}, "HEAD");
      for (const name of ["date", "connection", "transfer-encoding"]) {
        delete get.headers[name];
        delete head.headers[name];
      }
      assert.deepEqual([head.status, head.headers, head.body], [get.status, get.headers, ""], path);
    }
    assert.equal((await host.ask(`/ipfs/${site}/page`)).headers["content-type"], "text/html");
  });

  test("the type is detected from the beginning of a file, whichever range is requested", async () => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await host.ask(`/ipfs/${long}`, { range: `bytes=${CHUNK + 10}-` }, method);
      assert.deepEqual([status, headers["content-type"]], [206, "text/html"], method);
    }
  });

  test("an invalid percent escape is 400, even in a path that would exist", async () => {
    for (const path of [`/ipfs/${site}/%`, `/ipfs/${site}/%zz`, `/ipfs/${site}/sub/a.txt%4`]) {
      const { status, body } = await host.ask(path);
      assert.deepEqual([status, /^invalid URL escape "%/.test(body)], [400, true], path);
    }
    assert.equal((await host.ask(`/ipfs/${site}/latin/caf%25E9`)).body, "a percent sign");
  });

  test("a redirect to the path with a slash has the headers with the path and its blocks", async () => {
    const { status, headers } = await host.ask(`/ipfs/${site}/sub`);
    assert.deepEqual([status, headers["x-ipfs-path"]], [301, `/ipfs/${site}/sub`]);
    assert.match(String(headers["x-ipfs-roots"]), new RegExp(`^${site},baf\\w+$`));
  });

  test("a page shows names escaped, and no script runs in it", async () => {
    const { headers, body } = await host.ask(`/ipfs/${site}/sub/`);
    assert.ok(body.includes("&#60;b&#62;&#38;.txt"), body);
    assert.equal(body.includes("<b>&"), false);
    assert.match(String(headers["content-security-policy"]), /default-src 'none'; style-src 'sha256-/);
    assert.ok(body.includes(`/ipfs/<a href="/ipfs/${site}">${site}</a>/<a href="/ipfs/${site}/sub">sub</a>`), body);
    assert.ok(body.includes(`<a href="/ipfs/${site}/sub/..">..</a>`));
    assert.ok(body.includes(`<a href="/ipfs/${site}/sub/a.txt">a.txt</a>`));
  });

  test("a directory is JSON for clients that request it", async () => {
    const { status, headers, body } = await host.ask(`/ipfs/${site}/sub/?format=json`);
    assert.deepEqual([status, headers["content-type"]], [200, "application/json"]);
    const listed = JSON.parse(body) as { name: string; size: number }[];
    assert.deepEqual(listed.map(({ name }) => name).sort(), ["<b>&.txt", "a.txt"]);
  });

  test("an error is a page with escaped input for browsers, and a line of text for other clients", async () => {
    const path = `/ipfs/${site}/%3Cscript%3E`;
    const page = await host.ask(path, { accept: "text/html,*/*" });
    assert.deepEqual([page.status, page.headers["content-type"]], [404, "text/html; charset=utf-8"]);
    assert.equal(page.body.includes("<script>"), false);
    const line = await host.ask(path);
    assert.deepEqual([line.status, line.headers["content-type"]], [404, "text/plain; charset=utf-8"]);
    assert.match(line.body, /^failed to resolve \/ipfs\/.*: no link named "<script>" under .*\n$/);
  });

  test("only-if-cached is 412 for missing content and has no effect on other content", async () => {
    const cached = { "cache-control": "only-if-cached" };
    assert.equal((await host.ask(`/ipfs/${site}/sub/a.txt`, cached)).body, "in sub");
    assert.equal((await host.ask(`/ipfs/${site}/absent`, cached)).status, 412);
    assert.equal((await host.ask(`/ipfs/${site}/sub`, cached)).status, 301);
  });

  test("a path with .. never leaves its namespace", async () => {
    for (const path of [`/ipfs/${site}/../../x`, `/ipfs/${site}/../..`, "/ipfs/..", "/ipfs//"]) {
      assert.ok([400, 404].includes((await host.ask(path)).status), path);
    }
    assert.equal((await host.ask(`/ipfs/${site}/sub/./../sub/a.txt`)).body, "in sub");
  });

  test("methods that change content are 405, with the allowed methods", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      const { status, headers } = await host.ask(`/ipfs/${site}/sub/a.txt`, {}, method);
      assert.deepEqual([status, headers.allow], [405, "GET, HEAD, OPTIONS"], method);
      assert.equal(headers["access-control-allow-origin"], "*");
    }
    const { status, headers } = await host.ask(`/ipfs/${site}`, {}, "OPTIONS");
    assert.deepEqual([status, headers.allow], [200, "GET, HEAD, OPTIONS"]);
  });
});

test("requests over the limit are 429 and succeed once others have finished", async () => {
  let cid = "";
  const fill = async (node: Parameters<Parameters<typeof startGatewayWith>[0]>[0]) => {
    cid = String((await node.add("few at a time")).cid);
  };
  await using host = await startGatewayWith(fill, { gateway_max_concurrent_requests: 1 });
  const all = await Promise.all(Array.from({ length: 20 }, () => host.ask(`/ipfs/${cid}`)));
  const refused = all.filter(({ status }) => status === 429);
  assert.ok(all.some(({ status }) => status === 200));
  for (const { headers } of refused) {
    assert.deepEqual([headers["retry-after"], headers["cache-control"]], ["60", "no-store"]);
  }
  assert.equal((await host.ask(`/ipfs/${cid}`)).status, 200);
});

test("a directory that was removed from the node is not served from the cache", async () => {
  let cid = "";
  await using host = await startGatewayWith(
    async (node) => {
      for await (const each of node.addAll([{ path: "d/a.txt", content: "a" }], { cidVersion: 1, pin: false })) {
        if (each.path === "d") cid = String(each.cid);
      }
    },
    { modules_enabled: ["http", "http_api", "http_gateway"] },
  );
  assert.equal((await host.ask(`/ipfs/${cid}/a.txt`)).body, "a");
  assert.equal((await host.ask(`/api/v0/block/rm?arg=${cid}`, {}, "POST")).status, 200);
  assert.equal((await host.ask(`/ipfs/${cid}/a.txt`)).status, 404);
});

test("faults of this machine are logged and not shown to clients", async () => {
  let cid = "";
  await using host = await startGatewayWith(async (node) => {
    cid = String((await node.add("a secret place", { cidVersion: 1 })).cid);
  });
  const node = host.host.exports<NodeModule>("node");
  const { store } = node.lowLevel.blocks;
  const broken = failure("STORE_BROKEN", { path: "/srv/secret/blocks", reason: "EIO" });
  const { getSoon } = store;
  store.getSoon = () => Promise.reject(broken);
  const { status, body } = await host.ask(`/ipfs/${cid}`);
  store.getSoon = () => Promise.reject(failure("REFERENCE_BROKEN", { reason: "/srv/secret/file changed" }));
  const gone = await host.ask(`/ipfs/${cid}`);
  store.getSoon = getSoon ?? (() => undefined);
  assert.deepEqual([status, gone.status], [500, 404]);
  assert.equal(/secret/.test(body + gone.body), false, body + gone.body);
  assert.match(host.log(), /\/srv\/secret\/blocks/);
  assert.equal((await host.ask(`/ipfs/${cid}`)).status, 200);
});
