import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openRepo } from "#node/storage/repo/repo.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask, multipart } from "../support.ts";

/** Starts a host on a repo whose configuration sets the listen addresses. */
function startAt(
  addresses: (folder: string) => Readonly<Record<string, unknown>>,
  config: Record<string, unknown> = {},
): Promise<RpcHost> {
  return startRpc(config, {
    async prepare(folder) {
      const repo = await openRepo(join(folder, "data", "repo"), { profile: "local" });
      for (const [key, value] of Object.entries(addresses(folder))) await repo.config.set(key, () => value);
      await repo.close();
    },
  });
}

const portsOf = ({ host }: RpcHost, service: string) =>
  host.listening().flatMap((open) => (open.service === service ? [open.port] : []));

/** Makes a call through a Unix socket. Returns status, headers and body. */
async function askSocket(socketPath: string, path: string, headers: Record<string, string> = {}, method = "POST") {
  const outgoing = request({
    socketPath,
    path: `/api/v0/${path}`,
    method,
    headers: { connection: "close", ...headers },
  });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let body = "";
  for await (const piece of response.setEncoding("utf8")) body += piece;
  return { status: response.statusCode, body };
}

describe("the gateway's address", () => {
  let host: RpcHost;
  let gateway: number;
  let cid: string;
  before(async () => {
    host = await startAt(() => ({ "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0" }), { api_tokens: ["open sesame"] });
    [gateway] = portsOf(host, "http_api_gateway") as [number];
    const { headers, body } = multipart([{ filename: "a.txt", content: "hello, gateway" }]);
    cid = JSON.parse((await ask(host.http, "add?quieter=true", { headers, body })).body).Hash;
  });
  after(() => host?.stop());

  test("the gateway's address serves read-only commands, by GET and by POST", async () => {
    for (const method of ["GET", "POST"]) {
      const { status, body } = await ask(gateway, `cat?arg=${cid}`, { method });
      assert.deepEqual([status, body], [200, "hello, gateway"]);
    }
    const stat = await ask(gateway, `block/stat/${cid}`, { method: "GET" });
    assert.deepEqual(JSON.parse(stat.body), { Key: cid, Size: 22 });
  });

  test("the gateway's address serves HEAD with headers only", async () => {
    const { status, headers, body } = await ask(gateway, `cat?arg=${cid}`, { method: "HEAD" });
    assert.deepEqual([status, headers["x-content-length"], body], [200, "14", ""]);
  });

  test("the gateway's address has no command that changes anything", async () => {
    const { headers, body } = multipart([{ filename: "a", content: "a" }]);
    for (const path of [
      "add",
      "pin/add",
      "block/put",
      "block/rm",
      "config",
      "shutdown",
      "repo/gc",
      "id",
      "pin",
      "repo",
    ]) {
      const reply = await ask(gateway, `${path}?arg=${cid}`, { headers, body });
      assert.deepEqual([path, reply.status, reply.body], [path, 404, "404 page not found\n"]);
    }
    const listed = await ask(gateway, "commands", { method: "GET" });
    const { Subcommands } = JSON.parse(listed.body) as { Subcommands: { Name: string }[] };
    const names = "block cat commands dag dns get ls name object refs resolve version".split(" ");
    assert.deepEqual(Subcommands.map(({ Name }) => Name).sort(), names);
  });

  test("the gateway's address lists its methods", async () => {
    const allow = "OPTIONS, POST, HEAD, GET";
    const refused = await ask(gateway, "version", { method: "PUT" });
    assert.deepEqual([refused.status, refused.headers.allow], [405, allow]);
    const outgoing = await ask(gateway, "version", { method: "OPTIONS" });
    assert.deepEqual([outgoing.status, outgoing.headers.allow], [204, allow]);
  });

  test("the gateway's address reports that it serves no content paths", async () => {
    for (const path of [`/ipfs/${cid}`, "/ipns/example.org", "/ipfs", "/ipns/"]) {
      const { status, body } = await ask(gateway, path, { method: "GET" });
      assert.equal(status, 404);
      assert.match(body, /^Content paths are not served here.*\/api\/v0\/cat/);
    }
    const { status, body } = await ask(gateway, "/ipfsx", { method: "GET" });
    assert.deepEqual([status, body], [404, "404 page not found\n"]);
  });

  test("the gateway's address has the same access checks as the API", async () => {
    const outgoing = (headers: Record<string, string>, method = "GET") => ask(gateway, "version", { method, headers });
    const origin = `http://127.0.0.1:${gateway}`;
    const own = await outgoing({ Origin: origin });
    assert.deepEqual([own.status, own.headers["access-control-allow-origin"]], [200, origin]);
    const cases: [headers: Record<string, string>, status: number][] = [
      [{ Origin: "http://evil.example" }, 403],
      [{ Host: "evil.example" }, 403],
      [{ "Sec-Fetch-Site": "cross-site" }, 403],
      [{ "X-Forwarded-For": "203.0.113.7" }, 403],
      [{ "X-Forwarded-For": "203.0.113.7", Authorization: "Bearer open sesame" }, 200],
      [{ Authorization: "Bearer close sesame" }, 403],
      [{ "User-Agent": "Mozilla/5.0" }, 200],
    ];
    for (const [headers, status] of cases)
      assert.equal((await outgoing(headers)).status, status, JSON.stringify(headers));
    assert.equal((await outgoing({ "User-Agent": "Mozilla/5.0" }, "POST")).status, 403);
  });

  test("the gateway's address closes with the module, and opens with it again", async () => {
    await host.host.reload("http_api");
    assert.equal((await ask(gateway, `cat?arg=${cid}`, { method: "GET" })).body, "hello, gateway");
    await host.host.unload("http_api");
    assert.deepEqual(portsOf(host, "http_api_gateway"), []);
    await assert.rejects(ask(gateway, "version"), { code: "ECONNREFUSED" });
    await host.host.load("http_api");
    const [again] = portsOf(host, "http_api_gateway") as [number];
    assert.equal((await ask(again, `cat?arg=${cid}`, { method: "GET" })).body, "hello, gateway");
  });
});

test("a new repo opens no gateway, and the API listens on the ports of the host", async () => {
  await using host = await startRpc();
  assert.deepEqual(
    host.host.listening().map(({ service }) => service),
    ["http"],
  );
});

test("further addresses of the API have all commands, by POST only", async () => {
  const further = ["/ip4/127.0.0.1/tcp/5001", "/ip4/127.0.0.1/tcp/0"];
  await using host = await startAt(() => ({ "Addresses.API": further }));
  const [port] = portsOf(host, "http_api_further") as [number];
  assert.equal(portsOf(host, "http_api_further").length, 1);
  assert.notEqual(port, host.http);
  const id = await ask(port, "id");
  assert.deepEqual([id.status, id.body], [200, (await ask(host.http, "id")).body]);
  assert.equal((await ask(port, "id", { method: "GET" })).status, 405);
  assert.equal((await ask(port, "id", { headers: { Host: "evil.example" } })).status, 403);
});

const noSockets = process.platform === "win32" ? "there are no Unix sockets" : false;

test("a Unix socket serves users of this machine, as the file's permissions allow", { skip: noSockets }, async () => {
  const path = (folder: string) => join(folder, "api.sock");
  const addresses = (folder: string) => ["/ip4/127.0.0.1/tcp/5001", `/unix${path(folder)}`];
  await using host = await startAt((folder) => ({ "Addresses.API": addresses(folder) }), { api_tokens: ["sesame"] });
  const socket = path(host.folder);
  assert.equal((await askSocket(socket, "version")).status, 200);
  const refused = { "X-Forwarded-For": "203.0.113.7" };
  assert.equal((await askSocket(socket, "version", refused)).status, 403);
  assert.equal((await askSocket(socket, "version", { ...refused, Authorization: "Bearer sesame" })).status, 200);
  await host.host.unload("http_api");
  await assert.rejects(askSocket(socket, "version"), { code: "ENOENT" });
});

test("on a Unix socket any host name works, because the permissions of the file control access", {
  skip: noSockets,
}, async () => {
  const path = (folder: string) => join(folder, "api.sock");
  const addresses = (folder: string) => ["/ip4/127.0.0.1/tcp/5001", `/unix${path(folder)}`];
  await using host = await startAt((folder) => ({ "Addresses.API": addresses(folder) }));
  const socket = path(host.folder);
  for (const name of [encodeURIComponent(socket), "evil.example", "unix", "localhost:80"]) {
    const { status, body } = await askSocket(socket, "version", { host: name });
    assert.equal(status, 200, `${name}: ${body}`);
  }
  const page = { host: "evil.example", origin: "http://evil.example" };
  assert.equal((await askSocket(socket, "version", page)).status, 403);
  assert.equal((await ask(host.http, "version", { headers: { Host: "evil.example" } })).status, 403);
});

test("middleware of the option http_middleware runs in front of the API at every address, and middleware of modules while they are loaded", {
  skip: noSockets,
}, async () => {
  const path = (folder: string) => join(folder, "api.sock");
  const config = (folder: string) => ({
    "Addresses.API": ["/ip4/127.0.0.1/tcp/5001", "/ip4/127.0.0.1/tcp/0", `/unix${path(folder)}`],
    "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0",
  });
  const seen: string[] = [];
  const counting = (what: string) => async (context: { path: string }, next: () => Promise<unknown>) => {
    seen.push(`${what} ${context.path}`);
    await next();
  };
  const refusing = (context: { path: string; status: number }, next: () => Promise<unknown>) => {
    if (!context.path.endsWith("/dns")) return next();
    context.status = 429;
    return undefined;
  };
  const http_middleware = [
    { use: counting("api"), apps: ["api"] },
    { use: counting("other"), apps: ["other"] },
    { use: refusing },
  ];
  await using host = await startAt(config, { http_middleware });
  const ports = [host.http, ...portsOf(host, "http_api_further"), ...portsOf(host, "http_api_gateway")];
  assert.equal(ports.length, 3);
  for (const port of ports) {
    assert.deepEqual([(await ask(port, "version")).status, (await ask(port, "dns?arg=x")).status], [200, 429]);
  }
  assert.equal((await askSocket(path(host.folder), "version")).status, 200);
  assert.equal((await askSocket(path(host.folder), "dns?arg=x")).status, 429);
  assert.equal(seen.filter((each) => each === "api /api/v0/version").length, 4);
  assert.equal(
    seen.some((each) => each.startsWith("other")),
    false,
  );
  await host.host.reload("http");
  for (const port of [host.http, ...portsOf(host, "http_api_further")]) {
    assert.deepEqual([(await ask(port, "version")).status, (await ask(port, "dns?arg=x")).status], [200, 429]);
  }
});

test("the current API.Authorizations apply at every listener", {
  skip: noSockets,
}, async () => {
  const authorizations = { user: { AuthSecret: "bearer:sesame", AllowedPaths: ["/api/v0/config", "/api/v0/id"] } };
  const path = (folder: string) => join(folder, "api.sock");
  const config = (folder: string) => ({
    "Addresses.API": ["/ip4/127.0.0.1/tcp/5001", "/ip4/127.0.0.1/tcp/0", `/unix${path(folder)}`],
    "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0",
    "API.Authorizations": authorizations,
  });
  await using host = await startAt(config);
  const [further] = portsOf(host, "http_api_further") as [number];
  const [gateway] = portsOf(host, "http_api_gateway") as [number];
  const secret = { Authorization: "Bearer sesame" };
  const command = "version";
  for (const headers of [{}, { Authorization: "Bearer wrong" }, secret]) {
    const wanted = headers === secret ? 200 : 403;
    for (const port of [host.http, further, gateway])
      assert.equal((await ask(port, command, { headers })).status, wanted);
    assert.equal((await askSocket(path(host.folder), command, headers)).status, wanted);
  }
  assert.equal((await ask(host.http, "pin/ls", { headers: secret })).status, 403);

  const shown = JSON.parse((await ask(host.http, "config/show", { headers: secret })).body);
  assert.deepEqual(shown.API.Authorizations, {});
  const { headers, body } = multipart([{ filename: "config", content: JSON.stringify(shown) }]);
  assert.equal((await ask(host.http, "config/replace", { headers: { ...headers, ...secret }, body })).status, 200);
  const current = await ask(host.http, "config?arg=API.Authorizations", { headers: secret });
  assert.deepEqual(JSON.parse(current.body).Value, authorizations);

  const emptied = await ask(host.http, "config?arg=API.Authorizations&arg={}&json=true", { headers: secret });
  assert.equal(emptied.status, 200, emptied.body);
  for (const port of [host.http, further, gateway]) assert.equal((await ask(port, command)).status, 200);
});

test("configured headers that cannot be sent are logged, and responses have the others", async () => {
  const good = { "X-Good": ["a", "b"], "access-control-allow-origin": ["http://app.example"] };
  const bad = {
    "Bad Name": ["x"],
    "": ["x"],
    "X-Break": ["a\r\nX-Injected: b"],
    "X-Null": ["a\u0000"],
    "X-Wide": ["€"],
    "Content-Length": ["1"],
    "Transfer-Encoding": ["identity"],
    Connection: ["close"],
  };
  const file = async (folder: string) => {
    const config = join(folder, "data", "repo", "config");
    const document = JSON.parse(await readFile(config, "utf8"));
    document.API.HTTPHeaders = { ...good, ...bad };
    await writeFile(config, JSON.stringify(document));
  };
  await using host = await startRpc(
    {},
    {
      async prepare(folder) {
        await (await openRepo(join(folder, "data", "repo"), { profile: "local" })).close();
        await file(folder);
      },
    },
  );
  const warned = host
    .log()
    .split("\n")
    .filter((line) => line.includes("is not sent"));
  assert.equal(warned.length, Object.keys(bad).length, warned.join("\n"));
  assert.match(warned.join(), /API\.HTTPHeaders\.\\"X-Break\\" is not sent: a value has a line break/);
  for (const path of ["version", "repo/stat", "pin/ls?stream=true"]) {
    const { status, headers, body } = await ask(host.http, path);
    assert.equal(status, 200, body);
    assert.equal(headers["x-good"], "a, b");
    for (const name of ["x-break", "x-injected", "x-null", "x-wide"]) assert.equal(headers[name], undefined);
  }
});

test("a header that cannot be sent is refused by name when it is set", async () => {
  await using host = await startRpc();
  const set = (key: string, value: unknown) =>
    host.failure(`config?arg=${encodeURIComponent(key)}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
  for (const [key, value, expected] of [
    ["API.HTTPHeaders", { "X-A": ["a\nb"] }, /API\.HTTPHeaders\."X-A": a value has a line break/],
    ["API.HTTPHeaders.X-A", ["a\u007f"], /API\.HTTPHeaders\."X-A": a value has a line break/],
    ["API.HTTPHeaders.Bad Name", ["x"], /API\.HTTPHeaders\."Bad Name": this is not a valid header name/],
    ["API", { HTTPHeaders: { "Content-Length": ["1"] } }, /API\.HTTPHeaders\."Content-Length": the server sets/],
  ] as const) {
    const [status, message] = await set(key, value);
    assert.equal(status, 500);
    assert.match(String(message), expected);
  }
  const document = JSON.parse((await host.call("config/show")).text);
  document.API.HTTPHeaders = { "X A": ["x"] };
  const [status, message] = await host.failure("config/replace", { config: JSON.stringify(document) });
  assert.deepEqual([status, /API\.HTTPHeaders\."X A"/.test(String(message))], [500, true]);
  const { status: set200, text } = await host.call('config?arg=API.HTTPHeaders.X-B&arg=["b"]&json=true');
  assert.equal(set200, 200, text);
});

test("a socket that a dead process left is replaced, any other file is not", { skip: noSockets }, async (t) => {
  const left = await startRpc();
  t.after(() => left.stop());
  const stale = join(left.folder, "stale.sock");
  const program = `require("node:net").createServer().listen(${JSON.stringify(stale)}, () => process.kill(process.pid, "SIGKILL"))`;
  const { spawn } = await import("node:child_process");
  await once(spawn(process.execPath, ["-e", program]), "exit");
  const file = join(left.folder, "file");
  await writeFile(file, "kept");
  const addresses = ["/ip4/127.0.0.1/tcp/5001", `/unix${stale}`, `/unix${file}`];
  await using host = await startAt(() => ({ "Addresses.API": addresses }));
  assert.equal((await askSocket(stale, "version")).status, 200);
  assert.match(host.log(), new RegExp(`Cannot listen on ${file}`));
});

test("an address that is in use or invalid causes a warning", async (t) => {
  const other: Server = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const gateway = [`/ip4/127.0.0.1/tcp/${port}`, "/ip4/127.0.0.1/udp/4001/quic", "/ip4/127.0.0.1/tcp/0"];
  await using host = await startAt(() => ({ "Addresses.Gateway": gateway }));
  assert.equal((await ask(host.http, "version")).status, 200);
  assert.equal((await ask(portsOf(host, "http_api_gateway")[0] as number, "version")).status, 200);
  const warned = host
    .log()
    .split("\n")
    .filter((line) => line.includes('"warn"') && line.includes('"http_api"'));
  assert.equal(warned.length, 2, warned.join());
  assert.match(warned[0] as string, /Addresses\.Gateway: \/ip4\/127\.0\.0\.1\/udp\/4001\/quic is neither/);
  assert.match(warned[1] as string, new RegExp(`Cannot listen on port ${port} of 127.0.0.1: .*EADDRINUSE`));
});
