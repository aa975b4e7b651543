import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createNode } from "#node/index.ts";
import { Sandbox, urlOf } from "../cli/support.ts";
import { startRpc } from "../commands/support.ts";

const files = { "index.html": "<title>a front end</title>", "static/main.js": "go()" };

async function write(folder: string): Promise<void> {
  await mkdir(join(folder, "static"), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** Adds the files as a directory of a repo and returns its CID. */
async function add(repo: string): Promise<string> {
  await using node = await createNode({ repo, offline: true });
  let root = "";
  const entries = Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content) }));
  for await (const { cid, path } of node.addAll(entries, { wrapWithDirectory: true, cidVersion: 1 }))
    if (path === "") root = `${cid}`;
  return root;
}

/** Makes a request without following redirects. */
async function ask(url: string, init: RequestInit = {}) {
  const response = await fetch(url, { redirect: "manual", ...init });
  return { status: response.status, location: response.headers.get("location"), text: await response.text(), response };
}

describe("a front end at /webui of the API", () => {
  test("the front end may be a folder of files, and the daemon prints its URL", async () => {
    await using sandbox = await Sandbox.withRepo();
    const folder = join(sandbox.folder, "webui");
    await write(folder);
    const daemon = await sandbox.serve(["--offline"], { MODHOST_API_WEBUI: folder });
    const url = urlOf(await sandbox.api());
    assert.ok(daemon.lines().includes(`WebUI: ${url}/webui`));
    const { status, location } = await ask(`${url}/webui`);
    assert.deepEqual([status, location], [301, "/webui/"]);
    const page = await ask(`${url}/webui/`);
    assert.deepEqual([page.status, page.text], [200, files["index.html"]]);
    assert.equal(page.response.headers.get("x-frame-options"), "SAMEORIGIN");
    assert.equal(page.response.headers.get("access-control-allow-origin"), null);
    assert.equal((await ask(`${url}/webui/static/main.js`)).text, "go()");
    assert.equal((await ask(`${url}/webui/`, { method: "HEAD" })).status, 200);
    assert.equal((await ask(`${url}/webui/none`)).status, 404);
    // Pages of the front end may call the API, but pages of other origins may not.
    const call = (origin: string) => ask(`${url}/api/v0/version`, { method: "POST", headers: { origin } });
    assert.deepEqual([(await call(url)).status, (await call("http://other.example")).status], [200, 403]);
  });

  test("the front end may be content, to which /webui redirects; no other content is served", async () => {
    await using sandbox = await Sandbox.withRepo();
    const cid = await add(sandbox.repo);
    const daemon = await sandbox.serve(["--offline"], { MODHOST_API_WEBUI: cid });
    const url = urlOf(await sandbox.api());
    assert.ok(daemon.lines().includes(`WebUI: ${url}/webui`));
    const below = `/ipfs/${cid}`;
    const responses = ["/webui", "/webui/", "/webui/x", below, `${below}?a=b`].map((path) => ask(`${url}${path}`));
    assert.deepEqual(
      (await Promise.all(responses)).map(({ status, location }) => [status, location]),
      [
        [301, "/webui/"],
        [302, `${below}/`],
        [302, `${below}/`],
        [301, `${below}/`],
        [301, `${below}/?a=b`],
      ],
    );
    // Also by the name for which gateways use subdomains: the page stays at the origin of the API.
    const local = url.replace("127.0.0.1", "localhost");
    for (const base of [url, local]) {
      assert.equal((await ask(`${base}${below}/`)).text, files["index.html"]);
      assert.equal((await ask(`${base}${below}/static/main.js`)).text, "go()");
    }
    const other = "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
    assert.equal((await ask(`${url}${other}`)).status, 404);
  });

  test("the front end is served at ports of the host, by any host name", async () => {
    let cid = "";
    await using host = await startRpc(
      {},
      {
        prepare: async (folder) => void (cid = await add(join(folder, "data", "repo"))),
        config: () => ({
          modules_enabled: ["http", "http_api", "http_gateway"],
          https_ports: [],
          node_offline: true,
          api_webui: `/ipfs/${cid}/`,
        }),
      },
    );
    for (const name of ["127.0.0.1", "localhost"]) {
      const url = `http://${name}:${host.http}`;
      assert.equal((await ask(`${url}/webui`)).location, "/webui/");
      assert.equal((await ask(`${url}/webui/`)).text, files["index.html"]);
      assert.equal((await ask(`${url}/webui/static/main.js`)).text, "go()");
    }
    await host.host.unload("http_gateway");
    const { status, text } = await ask(`http://127.0.0.1:${host.http}/webui/`);
    assert.equal(status, 404);
    assert.match(text, /load the module http_gateway/);
  });

  test("the front end is absent if none or a missing one is named, and the daemon then prints no URL", async () => {
    await using sandbox = await Sandbox.withRepo();
    const plain = await sandbox.serve();
    assert.doesNotMatch(plain.lines().join("\n"), /WebUI/);
    const { status, text } = await ask(`${urlOf(await sandbox.api())}/webui/`);
    assert.equal(status, 404);
    assert.match(text, /the option api_webui/);
    await plain.stop();
    const missing = await sandbox.serve(["--offline"], { MODHOST_API_WEBUI: join(sandbox.folder, "none") });
    assert.doesNotMatch(missing.lines().join("\n"), /WebUI/);
    assert.match((await missing.stop()).stderr, /api_webui: .*none is neither a folder nor a CID/);
    await assert.rejects(
      sandbox.serve(["--offline"], { MODHOST_API_WEBUI: "/ipfs/nonsense" }),
      /"nonsense" is not a CID/,
    );
  });
});
