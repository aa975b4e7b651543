import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask } from "../support.ts";

let host: RpcHost;
/** Where the API answers: the host has no port of its own. */
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

test("the API moves to another port; the answer of the call that moves it goes out, and the file api follows", async () => {
  assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
  const next = await freePort();
  await next.close();
  const answer = await set("Addresses.API", `/ip4/127.0.0.1/tcp/${next.port}`);
  assert.deepEqual(JSON.parse(answer.body), { Key: "Addresses.API", Value: `/ip4/127.0.0.1/tcp/${next.port}` });
  assert.equal(answer.headers["x-modhost-config-waits"], undefined);
  await assert.rejects(ask(port, "version"));
  port = next.port;
  assert.equal((await ask(port, "version")).status, 200);
  assert.equal(await announced(), `/ip4/127.0.0.1/tcp/${port}`);
});

test("a port that is taken leaves the API where it is, and the answer has the reason", async () => {
  const taken = await freePort();
  const answer = await set("Addresses.API", `/ip4/127.0.0.1/tcp/${taken.port}`);
  assert.equal(answer.status, 200);
  assert.match(
    answer.headers["x-modhost-config-waits"] ?? "",
    /^Addresses\.API;reason="Port \d+ .* is not listened on: .*EADDRINUSE/,
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
