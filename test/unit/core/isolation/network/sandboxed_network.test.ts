/** Connections of a module in a real sandbox, which the broker of the host opens. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/free_port.ts";
import { pluginHost, stateOf } from "../../module/support.ts";

const skip = sandboxUnavailable() ?? false;

const shop = `import { connect } from "node:net";
import { createServer } from "node:http";
export const depends = ["http"];
const open = [];
const portOf = (request) => request.path.split("/").at(-1);
const said = (error) => [error.code, error.message, error.cause?.code, error.cause?.message].join(" ");
export default (module) => module.provides("http", { route: {
  "GET /fetch/*": ({ request }) => fetch("http://127.0.0.1:" + portOf(request)).then((response) => response.text()).catch(said),
  "GET /hold/*": ({ request }) => new Promise((resolve) => {
    const socket = connect(Number(portOf(request)), "127.0.0.1", () => resolve("held")).on("error", (error) => resolve(said(error)));
    open.push(socket);
  }),
  "GET /half/*": ({ request }) => new Promise((resolve) => {
    const socket = connect({ port: Number(portOf(request)), host: "127.0.0.1" }).on("error", (error) => resolve(said(error)));
    let text = "";
    socket.on("data", (piece) => { text += piece; }).on("end", () => resolve(text.split("\\r\\n").at(-1)));
    socket.end("GET / HTTP/1.1\\r\\n\\r\\n");
  }),
  "GET /listen": () => { try { createServer().listen(0); return "listens"; } catch (error) { return said(error); } },
} });`;

/** Returns a server that responds to each request, and the connections that it has. */
async function web(t: TestContext): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    // The response comes after the end of a client that has ended its side at once.
    socket.on("end", () => setTimeout(() => socket.end(), 100));
    socket.once("data", () =>
      setTimeout(() => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"), 50),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

describe("a sandboxed module", { skip }, () => {
  test("reaches a granted address, is refused others with the line that grants them, and takes its connections with it", {
    timeout: 120_000,
  }, async (t) => {
    const granted = await web(t);
    const other = await web(t);
    const item = `127.0.0.1:${granted.port}`;
    const modules = { shop: { run: "sandboxed", grant: { connect: [item] } } };
    const host = await pluginHost(t, { "mod_shop.js": shop }, { modules });
    const get = async (path: string) => (await host.inject(`/shop/${path}`)).body;
    assert.equal(await get(`fetch/${granted.port}`), "hello");
    assert.equal(await get(`half/${granted.port}`), "hello", "the response to a socket that has ended its side");
    const refused = await get(`fetch/${other.port}`);
    assert.match(refused, /PERMISSION_DENIED/);
    const line = `modules: { shop: { grant: { connect: ["127.0.0.1:${other.port}"] } } }`;
    assert.ok(refused.includes(line), refused);
    assert.equal(other.sockets.size, 0);
    assert.match(await get("listen"), /^SANDBOXED A sandboxed module cannot listen on a port that the system chooses/);
    const counted = stateOf(host, "shop")?.permissions?.map(({ what, used, denied }) => [what, used, denied]);
    assert.deepEqual(counted, [
      [item, 2, 0],
      [`127.0.0.1:${other.port}`, 0, 1],
    ]);

    assert.equal(await get(`hold/${granted.port}`), "held");
    await eventually("the connection is open", () => granted.sockets.size === 1);
    await host.host.unload("shop");
    await eventually("the connection has ended with the sandbox", () => granted.sockets.size === 0);
  });

  test("listens on a granted port through reloads and crashes, is refused others with the line that grants them, and leaves none", {
    timeout: 120_000,
  }, async (t) => {
    const server = `import { createServer } from "node:http";
import { once } from "node:events";
const id = crypto.randomUUID();
export const depends = ["http"];
export default async (module) => {
  const served = createServer((request, response) => response.end("hello from " + id));
  await once(served.listen(PORT), "listening");
  module.provides("http", { route: {
    GET: () => id,
    "GET /other": () => new Promise((resolve) => createServer().listen(OTHER).on("error", (error) => resolve(error.code + " " + error.message))),
    "GET /exit": () => process.exit(3),
  } });
};`;
    const port = await freePort();
    const other = await freePort();
    const text = server.replace("PORT", String(port)).replace("OTHER", String(other));
    const modules = { shop: { run: "sandboxed", grant: { listen: [port] } } };
    const host = await pluginHost(t, { "mod_shop.js": text }, { modules, quarantine_pause: 0.05 });
    const id = async () => (await host.inject("/shop")).body;
    const served = async () => (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } })).text();
    assert.equal(await served(), `hello from ${await id()}`);
    const refused = (await host.inject("/shop/other")).body;
    assert.match(refused, /^PERMISSION_DENIED The module shop may not listen on port/);
    assert.ok(refused.includes(`modules: { shop: { grant: { listen: [${other}] } } }`), refused);
    const counted = stateOf(host, "shop")?.permissions?.map(({ what, used, denied }) => [what, used, denied]);
    assert.deepEqual(counted, [
      [String(port), 1, 0],
      [String(other), 0, 1],
    ]);

    const first = await id();
    await Promise.all([
      host.reload("shop"),
      (async () => {
        for (let at = 0; at < 50; at += 1) assert.match(await served(), /^hello from [\da-f-]{36}$/);
      })(),
    ]);
    assert.notEqual(await id(), first);
    assert.equal(await served(), `hello from ${await id()}`);

    await host.inject("/shop/exit");
    await eventually("it is started again", async () => (await host.inject("/shop")).status === 200);
    assert.equal(await served(), `hello from ${await id()}`);

    await host.unload("shop");
    assert.deepEqual(host.host.residue("shop"), []);
    await assert.rejects(served(), ({ cause }) => cause.code === "ECONNREFUSED");
  });

  test("has a data folder of its own that it can write, if that is granted", { timeout: 120_000 }, async (t) => {
    const writer = `import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  GET: () => { const file = join(module.data_path(), "word"); writeFileSync(file, "kept"); return readFileSync(file, "utf8") + " " + module.data_path(); },
} });`;
    const modules = { shop: { run: "sandboxed", grant: { write: ["data"] } } };
    const host = await pluginHost(t, { "mod_shop.js": writer }, { modules });
    assert.equal((await host.inject("/shop")).body, `kept ${host.folder}/module_data/shop`);
  });

  test("opens no more files and sends no larger messages than its limits say", { timeout: 120_000 }, async (t) => {
    const greedy = `import { closeSync, openSync } from "node:fs";
export const depends = ["http"];
const said = (call) => { try { return call() ?? "done"; } catch (error) { return error.code ?? error.message; } };
export default (module) => module.provides("http", { route: {
  "GET /files": () => { const open = []; const end = said(() => { for (;;) open.push(openSync(module.get_directory() + "/mod_shop.js")); }); open.forEach((fd) => closeSync(fd)); return end + " " + (open.length < 100); },
  "GET /small": () => said(() => void module.announce_event("shop-word", "x".repeat(1000))),
  "GET /large": () => said(() => void module.announce_event("shop-word", "x".repeat(100_000))),
} });`;
    const modules = { shop: { run: "sandboxed", limits: { open_files: 100, message_size: "64KiB" } } };
    const host = await pluginHost(t, { "mod_shop.js": greedy }, { modules });
    assert.equal((await host.inject("/shop/files")).body, "EMFILE true");
    assert.equal((await host.inject("/shop/small")).body, "done");
    assert.match((await host.inject("/shop/large")).body, /65536/);
    assert.equal(stateOf(host, "shop")?.status, "loaded");
  });
});
