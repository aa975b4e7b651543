import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createNode } from "#node/index.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { askAt, type GatewayResponse, prepareRepo } from "./support.ts";

test("a front end at the origin of the API finds the gateway, and gets previews, downloads and blocks as a browser requests them", async () => {
  let file = "";
  let folder = "";
  let repoFolder = "";
  await using host = await startRpc(
    { modules_enabled: ["http", "http_api", "http_gateway"] },
    {
      async prepare(hostFolder) {
        repoFolder = join(hostFolder, "data", "repo");
        await prepareRepo(hostFolder);
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

  // The page reads the gateway's address from the config through the API. Other programs read the
  // file.
  const configResponse = await fetch(`${origin}/api/v0/config?arg=Addresses.Gateway`, {
    method: "POST",
    headers: { origin },
  });
  assert.deepEqual(
    [configResponse.status, ((await configResponse.json()) as { Key: string }).Key],
    [200, "Addresses.Gateway"],
  );
  const url = new URL(await readFile(join(repoFolder, "gateway"), "utf8"));
  const port = Number(url.port);

  /**
   * Sends a request as the browser of a page does: with a preflight request unless it is a plain
   * GET. Asserts that the page may read the response.
   */
  async function browserRequest(
    path: string,
    headers: Record<string, string> = {},
    method = "GET",
    at = `127.0.0.1:${port}`,
  ): Promise<GatewayResponse> {
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
    const response = await askAt(port, path, { origin, host: at, ...headers }, method);
    assert.equal(response.headers["access-control-allow-origin"], "*", `${response.status} ${path}`);
    return response;
  }

  const path = `/ipfs/${file}`;
  const preview = await browserRequest(`${path}?filename=video.mp4`);
  assert.deepEqual([preview.status, preview.headers["content-type"], preview.body], [200, "video/mp4", "0123456789"]);
  const part = await browserRequest(`${path}?filename=video.mp4`, { range: "bytes=2-4" });
  assert.deepEqual([part.status, part.headers["content-range"], part.body], [206, "bytes 2-4/10", "234"]);
  const exposed = `${part.headers["access-control-expose-headers"]}`;
  for (const name of ["Content-Range", "Content-Length", "X-Ipfs-Path", "X-Ipfs-Roots"]) {
    assert.ok(exposed.includes(name), name);
  }
  const length = await browserRequest(path, {}, "HEAD");
  assert.deepEqual([length.status, length.headers["content-length"]], [200, "10"]);

  const saved = await browserRequest(`${path}?download=true&filename=my%20video.mp4`);
  assert.match(saved.headers["content-disposition"] ?? "", /^attachment; .*filename\*=UTF-8''my%20video\.mp4$/);
  const archive = await browserRequest(`/ipfs/${folder}?format=car&download=true&filename=all.car`);
  assert.match(archive.headers["content-type"] ?? "", /^application\/vnd\.ipld\.car/);
  assert.match(archive.headers["content-disposition"] ?? "", /^attachment; filename="all\.car"/);
  const block = await browserRequest(`${path}?format=raw`);
  assert.deepEqual([block.headers["content-type"], block.body], ["application/vnd.ipld.raw", "0123456789"]);

  // Redirects and errors can be read as well. Otherwise the page would only know that the request
  // failed.
  assert.equal((await browserRequest(`/ipfs/${folder}`)).status, 301);
  const page = await browserRequest(`/ipfs/${folder}/`);
  assert.match(page.body, /video\.mp4/);
  assert.equal((await browserRequest(`/ipfs/${folder}/none`)).status, 404);
  const moved = await browserRequest(path, {}, "GET", `localhost:${port}`);
  assert.equal(moved.headers.location, `http://${file}.ipfs.localhost:${port}/`);
  const there = await browserRequest("/", { range: "bytes=0-1" }, "GET", `${file}.ipfs.localhost:${port}`);
  assert.deepEqual([there.status, there.body], [206, "01"]);
});
