import assert from "node:assert/strict";
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { CID } from "multiformats/cid";
import type { Node } from "#node/index.ts";
import { startGatewayWith } from "./support.ts";

async function startSite(t: TestContext) {
  const cids = new Map<string, CID>();
  let name = "";
  const fill = async (node: Node) => {
    const files = ["index.html", "bad.txt", "sub/page.txt"].map((path) => ({ path: `site/${path}`, content: path }));
    for await (const { path, cid } of node.addAll(files, { cidVersion: 1, rawLeaves: true })) cids.set(path, cid);
    name = (await node.name.publish(`/ipfs/${cids.get("site")}`, { allowOffline: true })).name;
  };
  const host = await startGatewayWith(fill);
  t.after(() => host.stop());
  const of = (path: string) => String(cids.get(path));
  const folder = join(host.folder, "data", "repo", "denylists");
  /**
   * Waits until the path is served with this status, because the node notices changes of the file
   * after a while.
   */
  const becomes = async (path: string, status: number, headers = {}) => {
    const end = performance.now() + 60_000;
    let response = await host.ask(path, headers);
    while (response.status !== status && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      response = await host.ask(path, headers);
    }
    assert.equal(response.status, status);
    return response;
  };
  return { host, name, root: of("site"), bad: of("site/bad.txt"), page: of("site/sub/page.txt"), folder, becomes };
}

test("denied content is 410, or 451 for legal reasons, in every format and without a restart", async (t) => {
  const { host, root, bad, page, folder, becomes } = await startSite(t);
  const site = `/ipfs/${root}`;
  const { headers } = await host.ask(`${site}/bad.txt`);
  assert.equal((await host.ask(`${site}/sub/page.txt`)).status, 200);

  // The folder is created while the host runs.
  await mkdir(folder);
  await writeFile(join(folder, "a.deny"), `/ipfs/${bad}\n`);
  const refused = await becomes(`${site}/bad.txt`, 410);
  assert.equal(refused.body, `failed to resolve ${site}/bad.txt: ${bad} is blocked and cannot be provided\n`);
  assert.equal(refused.headers["x-ipfs-path"], `${site}/bad.txt`);
  for (const form of ["?format=raw", "?format=car", "?format=tar"]) {
    const { status, body } = await host.ask(`/ipfs/${bad}${form}`);
    assert.equal(status, 410, form);
    assert.match(body, /is blocked and cannot be provided\n$/);
  }
  // A cached copy of the client is not confirmed with 304.
  assert.equal((await host.ask(`${site}/bad.txt`, { "if-none-match": String(headers.etag) })).status, 410);
  assert.equal((await host.ask(`${site}/bad.txt`, {}, "HEAD")).status, 410);

  // The node notices appended lines and renamed files.
  await writeFile(join(folder, "a.deny"), `${site}/sub/* gateway_status:451\n`, { flag: "a" });
  const unlawful = await becomes(`${site}/sub/page.txt`, 451);
  assert.match(unlawful.body, /is blocked and cannot be provided\n$/);
  assert.match((await host.ask(`${site}/sub/`, { accept: "text/html" })).body, /legal reasons/);
  assert.equal((await host.ask(`/ipfs/${page}`)).status, 200);
  await rename(join(folder, "a.deny"), join(folder, "a.off"));
  await becomes(`${site}/sub/page.txt`, 200);
  await becomes(`${site}/bad.txt`, 200);

  // The list may be a link to a file elsewhere, which changes there.
  const elsewhere = join(host.folder, "elsewhere");
  await writeFile(elsewhere, `/ipfs/${bad}\n`);
  await symlink(elsewhere, join(folder, "b.deny"));
  await becomes(`${site}/bad.txt`, 410);
  await writeFile(elsewhere, "# nothing\n");
  await becomes(`${site}/bad.txt`, 200);
});

test("a directory that is cached is checked against the denylists, and so is its index", async (t) => {
  const { host, name, root, folder, becomes } = await startSite(t);
  assert.equal((await host.ask(`/ipfs/${root}/`)).body, "index.html");
  assert.equal((await host.ask(`/ipns/${name}/`)).body, "index.html");
  await mkdir(folder);
  await writeFile(join(folder, "a.deny"), `/ipfs/${root}/index.html\n`);
  await becomes(`/ipfs/${root}/`, 410);
  assert.equal((await host.ask(`/ipns/${name}/`)).status, 410);
  assert.equal((await host.ask(`/ipfs/${root}/sub/page.txt`)).status, 200);
  await writeFile(join(folder, "b.deny"), `/ipfs/${root}\n`);
  await becomes(`/ipfs/${root}/sub/page.txt`, 410);
});
