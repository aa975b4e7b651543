import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask, multipart } from "../support.ts";

let host: RpcHost;
/** The port of the API; the host has no port of its own. */
let port = 0;
before(async () => {
  host = await startRpc(
    { http_ports: [] },
    {
      async prepare(folder) {
        const { openRepo } = await import("#node/storage/repo/repo.ts");
        const repo = await openRepo(join(folder, "data", "repo"), { profile: "local" });
        await repo.config.set("Addresses.API", () => "/ip4/127.0.0.1/tcp/0");
        await repo.close();
      },
    },
  );
  port = portOf("http_api_further") as number;
});
after(() => host?.stop());

const portOf = (service: string) => host.host.listening().find((open) => open.service === service)?.port;
const set = (key: string, value: unknown, at = port) =>
  ask(at, `config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
const announced = async () => (await readFile(join(host.folder, "data", "repo", "api"), "utf8")).trim();

async function freePort(): Promise<{ readonly port: number; close(): Promise<unknown> }> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const close = () => new Promise((resolve) => server.close(resolve));
  return { port: (server.address() as { port: number }).port, close };
}

test("the API moves to another port; the response of that call is still sent, and the file api follows", async () => {
  assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
  const next = await freePort();
  await next.close();
  const reply = await set("Addresses.API", `/ip4/127.0.0.1/tcp/${next.port}`);
  assert.deepEqual(JSON.parse(reply.body), { Key: "Addresses.API", Value: `/ip4/127.0.0.1/tcp/${next.port}` });
  assert.equal(reply.headers["x-modhost-config-waits"], undefined);
  await assert.rejects(ask(port, "version"));
  port = next.port;
  assert.equal((await ask(port, "version")).status, 200);
  assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
});

test("a port in use leaves the API at its address, and the response has the reason", async () => {
  const taken = await freePort();
  const reply = await set("Addresses.API", `/ip4/127.0.0.1/tcp/${taken.port}`);
  assert.equal(reply.status, 200);
  assert.match(
    reply.headers["x-modhost-config-waits"] ?? "",
    /^Addresses\.API;reason="Cannot listen on port \d+ .*: .*EADDRINUSE/,
  );
  assert.equal((await ask(port, "version")).status, 200);
  await taken.close();
  assert.equal((await set("Addresses.API", `/ip4/127.0.0.1/tcp/${port}`)).headers["x-modhost-config-waits"], undefined);
});

test("a gateway and a Unix socket open with their addresses, and close without them", async () => {
  assert.equal(portOf("http_api_gateway"), undefined);
  await set("Addresses.Gateway", "/ip4/127.0.0.1/tcp/0");
  const gateway = portOf("http_api_gateway") as number;
  assert.equal((await ask(gateway, "version")).status, 200);
  assert.equal((await ask(gateway, "config/show")).status, 404);
  await set("Addresses.Gateway", null);
  await assert.rejects(ask(gateway, "version"));
  const socket = join(host.folder, "api.sock");
  await set("Addresses.API", [`/ip4/127.0.0.1/tcp/${port}`, `/unix${socket}`]);
  const { request } = await import("node:http");
  const status = await new Promise((resolve, reject) => {
    request({ socketPath: socket, path: "/api/v0/version", method: "POST" }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
  assert.equal(status, 200);
  await set("Addresses.API", `/ip4/127.0.0.1/tcp/${port}`);
  await assert.rejects(readFile(socket), { code: "ENOENT" });
});

/** Returns the reason why a value does not apply yet, from the response to the call that set it. */
const reasonFor = async (key: string, value: unknown) => {
  const reply = await set(key, value);
  assert.equal(reply.status, 200, reply.body);
  return reply.headers["x-modhost-config-waits"] ?? "";
};

for (const [what, value, reason] of [
  ["no multiaddress", "bogus", /"bogus\\" is neither a TCP port nor a Unix socket: the previous addresses stay open/],
  ["a port beyond 65535", "/ip4/127.0.0.1/tcp/65536", /is neither a TCP port/],
  ["an address of another transport", "/ip4/127.0.0.1/udp/4001/quic-v1", /is neither a TCP port/],
  ["one good and one bad address", ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1"], /is neither a TCP port/],
  ["an empty text", "", /without an address nobody could reach the API/],
  ["an empty list", [], /without an address nobody could reach the API/],
  ["null", null, /without an address nobody could reach the API/],
  ["a host that does not exist", "/dns4/nobody.invalid/tcp/5001", /Cannot listen on/],
  ["an address of another machine", "/ip4/192.0.2.1/tcp/5001", /Cannot listen on .*EADDRNOTAVAIL/],
  ["a Unix socket in a folder that does not exist", "/unix/nowhere/at/all/api.sock", /Cannot listen on/],
  [
    "another port and a Unix socket that cannot be",
    ["/ip4/127.0.0.2/tcp/0", "/unix/nowhere/api.sock"],
    /Cannot listen on/,
  ],
] as const) {
  test(`the API and the file api keep their address when it is changed to ${what}`, async () => {
    const before = await set("Addresses.API", `/ip4/127.0.0.1/tcp/${port}`);
    assert.equal(before.headers["x-modhost-config-waits"], undefined);
    assert.match(await reasonFor("Addresses.API", value), reason);
    assert.equal((await ask(port, "version")).status, 200);
    assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
    assert.equal(host.host.listening().length, 1, JSON.stringify(host.host.listening()));
    assert.equal(await reasonFor("Addresses.API", `/ip4/127.0.0.1/tcp/${port}`), "");
  });
}

test("a gateway keeps its address when the new one is invalid, and closes when the list is emptied", async () => {
  assert.equal(await reasonFor("Addresses.Gateway", "/ip4/127.0.0.1/tcp/0"), "");
  const gateway = portOf("http_api_gateway") as number;
  for (const value of ["bogus", ["/ip4/127.0.0.1/tcp/0", "/ip4"], "/ip4/192.0.2.1/tcp/8080"]) {
    assert.match(await reasonFor("Addresses.Gateway", value), /^Addresses\.Gateway;reason=/);
    assert.equal((await ask(gateway, "version")).status, 200);
  }
  assert.equal(await reasonFor("Addresses.Gateway", ""), "");
  await assert.rejects(ask(gateway, "version"));
});

test("a replaced configuration without addresses does not change the API's address", async () => {
  const { headers, body } = multipart([{ filename: "config", content: JSON.stringify({ Addresses: {} }) }]);
  const shown = JSON.parse((await ask(port, "config/show")).body);
  const reply = await ask(port, "config/replace", { headers, body });
  assert.equal((await ask(port, "version")).status, 200, reply.body);
  assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
  const whole = multipart([{ filename: "config", content: JSON.stringify(shown) }]);
  assert.equal((await ask(port, "config/replace", { headers: whole.headers, body: whole.body })).status, 200);
});

test("a config file that is broken or missing for a moment does not change the API's address", async () => {
  const path = join(host.folder, "data", "repo", "config");
  const good = await readFile(path, "utf8");
  const node = host.host.exports<{ lowLevel: { repo: { config: { reread(): Promise<unknown> } } } }>("node");
  for (const broken of ["", "{", '{"Addresses": {"API": 5}}', "[]", "null"]) {
    await writeFile(path, broken);
    await assert.rejects(node.lowLevel.repo.config.reread());
    assert.equal((await ask(port, "version")).status, 200);
    assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
  }
  await rm(path);
  await assert.rejects(node.lowLevel.repo.config.reread());
  assert.equal((await ask(port, "version")).status, 200);
  await writeFile(path, good, { mode: 0o600 });
  await node.lowLevel.repo.config.reread();
});

test("no change of the authorizations can lock out the owner of the repo", async () => {
  const values = [{ user: { AuthSecret: "bearer:x", AllowedPaths: [] } }, { user: { AuthSecret: "basic:x:y" } }, {}];
  for (const value of values) {
    const token = await readFile(join(host.folder, "data", "repo", "api-token"), "utf8").catch(() => undefined);
    const query = `config?arg=API.Authorizations&json=true&arg=${encodeURIComponent(JSON.stringify(value))}`;
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token.trim()}` };
    const reply = await ask(port, query, { headers });
    assert.equal(reply.status, 200, reply.body);
  }
  assert.equal((await ask(port, "version")).status, 200);
});
