import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { CarReader } from "@ipld/car";
import { extract } from "tar-stream";
import { sharedNode } from "./support.ts";

const shared = sharedNode();
const text = "0123456789";
const cid = "QmRmw5nEjzwc5xDKH2tXXGLD96RHJzfJLe3nfTQuGBA5dj";

const content = (path: string, headers: Record<string, string> = {}, as?: string) => {
  const fields = new URLSearchParams({ path, ...(as === undefined ? {} : { as }) });
  return shared.host.ask(`/node/files/content?${fields}`, { headers });
};

const rangeOf = async (range: string, more: Record<string, string> = {}) => {
  const response = await content("/media/film.mp4", { range, ...more });
  return [response.status, response.headers.get("content-range"), await response.text()];
};

describe("a downloaded file", () => {
  before(async () => {
    await shared.host.upload("/media/film.mp4", text);
  });

  test("has its type and length, and its CID as validator", async () => {
    const whole = await content("/media/film.mp4");
    const { headers } = whole;
    assert.deepEqual(
      ["content-type", "content-length", "accept-ranges", "content-disposition"].map((name) => headers.get(name)),
      ["video/mp4", "10", "bytes", `inline; filename="film.mp4"; filename*=UTF-8''film.mp4`],
    );
    assert.equal(await whole.text(), text);
    const etag = headers.get("etag") ?? "";
    assert.match(etag, /^"Qm\w{44}"$/);
    const again = await content("/media/film.mp4", { "if-none-match": `"other", ${etag}` });
    assert.deepEqual([again.status, await again.text()], [304, ""]);
  });

  test("is read in ranges, as players do that seek", async () => {
    assert.deepEqual(await rangeOf("bytes=2-4"), [206, "bytes 2-4/10", "234"]);
    assert.deepEqual(await rangeOf("bytes=7-"), [206, "bytes 7-9/10", "789"]);
    assert.deepEqual(await rangeOf("bytes=-3"), [206, "bytes 7-9/10", "789"]);
    assert.deepEqual(await rangeOf("bytes=8-99"), [206, "bytes 8-9/10", "89"]);
    assert.deepEqual(await rangeOf("bytes=10-"), [416, "bytes */10", ""]);
    assert.deepEqual(await rangeOf("bytes=1-2,4-5"), [200, null, text]);
    assert.deepEqual(await rangeOf("bytes=2-4", { "if-range": '"other"' }), [200, null, text]);
  });

  test("may be empty, but not a directory or missing", async () => {
    await shared.host.upload("/media/empty.txt", "");
    const empty = await content("/media/empty.txt");
    assert.deepEqual([empty.status, await empty.text()], [200, ""]);
    assert.equal((await content("/media")).status, 400);
    assert.equal((await content("/media/none")).status, 404);
    assert.equal((await content(`/ipfs/${cid}/none`)).status, 404);
  });
});

describe("content of unknown origin:", () => {
  const guarded = async (path: string, as?: string) => {
    const { headers } = await content(path, {}, as);
    assert.match(headers.get("content-security-policy") ?? "", /^sandbox; default-src 'none';/);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    return [headers.get("content-type"), headers.get("content-disposition")?.split(";")[0]];
  };

  for (const name of ["page.html", "picture.svg", "code.js", "style.css", "page.xhtml", "feed.xml"]) {
    test(`${name} is shown as text, and saved as bytes`, async () => {
      await shared.host.upload(`/bad/${name}`, "<script>alert(1)</script>", { replace: true });
      assert.deepEqual(await guarded(`/bad/${name}`), ["text/plain; charset=utf-8", "inline"]);
      assert.deepEqual(await guarded(`/bad/${name}`, "download"), ["application/octet-stream", "attachment"]);
      assert.deepEqual(await guarded(`/bad/${name}`, "text"), ["text/plain; charset=utf-8", "inline"]);
    });
  }

  test("misleading or harmful names are replaced by harmless ones in downloads", async () => {
    const evil = `"quote\u202egpj.exe\r\nX-Evil: 1;<b>${"\u{1f600}".repeat(80)}.txt`;
    await shared.host.node.files.write(`/bad/${evil}`, "x", { create: true, parents: true });
    const { headers, status } = await content(`/bad/${evil}`, {}, "download");
    assert.equal(status, 200);
    assert.equal(headers.get("x-evil"), null);
    const shown = headers.get("content-disposition") ?? "";
    assert.match(shown, /^attachment; filename="[^"]+"; filename\*=UTF-8''[\w%.~-]+$/);
    const name = decodeURIComponent(shown.split("''")[1] ?? "");
    assert.match(name, /^_quote_gpj\.exe__X-Evil_ 1;_b_\u{1f600}+\.txt$/u);
    assert.ok(Buffer.byteLength(name) <= 200);
  });
});

describe("a downloaded directory", () => {
  before(async () => {
    for (const name of ["a.txt", "b/c.txt"]) await shared.host.upload(`/packed/tree/${name}`, name);
  });

  test("is a tar archive with its name", async () => {
    const response = await shared.host.ask("/node/files/tar?path=/packed/tree");
    assert.equal(response.headers.get("content-type"), "application/x-tar");
    assert.match(response.headers.get("content-disposition") ?? "", /^attachment; filename="tree\.tar"/);
    const names: string[] = [];
    const archive = extract().on("entry", (header, stream, next) => {
      names.push(header.name);
      stream.on("end", next).resume();
    });
    archive.end(Buffer.from(await response.arrayBuffer()));
    await new Promise((resolve, reject) => archive.on("finish", () => resolve(undefined)).on("error", reject));
    assert.deepEqual(names.map((name) => name.replace(/\/$/, "")).sort(), [
      "tree",
      "tree/a.txt",
      "tree/b",
      "tree/b/c.txt",
    ]);
  });

  test("is a CAR file with all of its blocks", async () => {
    const response = await shared.host.ask("/node/files/car?path=/packed/tree");
    const car = await CarReader.fromBytes(new Uint8Array(await response.arrayBuffer()));
    const { cid: root } = await shared.host.node.files.stat("/packed/tree");
    assert.deepEqual((await car.getRoots()).map(String), [String(root)]);
    assert.equal((await Array.fromAsync(car.cids())).length, 4);
  });
});
