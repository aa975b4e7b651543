import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "#node/index.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { type Answer, askAt, prepareRepo } from "./support.ts";

test("a front end at the origin of the API finds the gateway, and gets previews, downloads and blocks from it as a browser asks", async () => {
  let file = "";
  let folder = "";
  let repoFolder = "";
  await using host = await startRpc(
    { modules_enabled: ["http", "http_api", "http_gateway"] },
    {
      async prepare(place) {
        repoFolder = join(place, "data", "repo");
        await prepareRepo(place);
        await using node = await createNode({ repo: repoFolder, offline: true });
        const entry = { path: "video.mp4", content: Buffer.from("0123456789") };
        for await (const { cid, path } of node.addAll([entry], { wrapWithDirectory: true, cidVersion: 1 })) {
          if (path === "") folder = `${cid}`;
          else file = `${cid}`;
        }
      },
    },
  );
  const origin = `http://127.0.0.1:${host.http}`;

  // Where it is: of the config, as the page asks for it; other programs read the file.
  const told = await fetch(`${origin}/api/v0/config?arg=Addresses.Gateway`, { method: "POST", headers: { origin } });
  assert.deepEqual([told.status, ((await told.json()) as { Key: string }).Key], [200, "Addresses.Gateway"]);
  const url = new URL(await readFile(join(repoFolder, "gateway"), "utf8"));
  const port = Number(url.port);

  /**
   * What a page may read of: its browser asks first where the request has more than a plain GET.
   */
  async function asked(
    path: string,
    headers: Record<string, string> = {},
    method = "GET",
    at = `127.0.0.1:${port}`,
  ): Promise<Answer> {
    const names = Object.keys(headers);
    if (names.length > 0) {
      const preflight = {
        origin,
        host: at,
        "access-control-request-method": method,
        "access-control-request-headers": names.join(","),
      };
      const allowed = await askAt(port, path, preflight, "OPTIONS");
      assert.ok(allowed.status === 200 || allowed.status === 204, path);
      assert.equal(allowed.headers["access-control-allow-origin"], "*");
      const listed = (name: string) => `${allowed.headers[name]}`.toLowerCase().split(", ");
      assert.ok(listed("access-control-allow-methods").includes(method.toLowerCase()));
      for (const name of names) assert.ok(listed("access-control-allow-headers").includes(name), name);
    }
    const answer = await askAt(port, path, { origin, host: at, ...headers }, method);
    assert.equal(answer.headers["access-control-allow-origin"], "*", `${answer.status} ${path}`);
    return answer;
  }

  const path = `/ipfs/${file}`;
  const preview = await asked(`${path}?filename=video.mp4`);
  assert.deepEqual([preview.status, preview.headers["content-type"], preview.body], [200, "video/mp4", "0123456789"]);
  const part = await asked(`${path}?filename=video.mp4`, { range: "bytes=2-4" });
  assert.deepEqual([part.status, part.headers["content-range"], part.body], [206, "bytes 2-4/10", "234"]);
  const exposed = `${part.headers["access-control-expose-headers"]}`;
  for (const name of ["Content-Range", "Content-Length", "X-Ipfs-Path", "X-Ipfs-Roots"]) {
    assert.ok(exposed.includes(name), name);
  }
  const length = await asked(path, {}, "HEAD");
  assert.deepEqual([length.status, length.headers["content-length"]], [200, "10"]);

  const saved = await asked(`${path}?download=true&filename=my%20video.mp4`);
  assert.match(saved.headers["content-disposition"] ?? "", /^attachment; .*filename\*=UTF-8''my%20video\.mp4$/);
  const archive = await asked(`/ipfs/${folder}?format=car&download=true&filename=all.car`);
  assert.match(archive.headers["content-type"] ?? "", /^application\/vnd\.ipld\.car/);
  assert.match(archive.headers["content-disposition"] ?? "", /^attachment; filename="all\.car"/);
  const block = await asked(`${path}?format=raw`);
  assert.deepEqual([block.headers["content-type"], block.body], ["application/vnd.ipld.raw", "0123456789"]);

  // What goes on elsewhere, or fails, may be read as well: else the page knows no more than that it
  // failed.
  assert.equal((await asked(`/ipfs/${folder}`)).status, 301);
  const page = await asked(`/ipfs/${folder}/`);
  assert.match(page.body, /video\.mp4/);
  assert.equal((await asked(`/ipfs/${folder}/none`)).status, 404);
  const moved = await asked(path, {}, "GET", `localhost:${port}`);
  assert.equal(moved.headers.location, `http://${file}.ipfs.localhost:${port}/`);
  const there = await asked("/", { range: "bytes=0-1" }, "GET", `${file}.ipfs.localhost:${port}`);
  assert.deepEqual([there.status, there.body], [206, "01"]);
});
