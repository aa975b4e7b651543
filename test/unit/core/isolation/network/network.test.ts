/** Opens connections in a sandbox of a thread, over the broker of the host. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttp, type Server as HttpServer } from "node:http";
import { createSecureServer as createHttp2, type Http2SecureServer } from "node:http2";
import { type AddressInfo, connect, createServer, type LookupFunction, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { Worker } from "node:worker_threads";
import { Broker } from "#core/isolation/network/broker.ts";
import { ModulePorts } from "#core/isolation/network/module_ports.ts";
import { SandboxServers } from "#core/isolation/network/sandbox_servers.ts";
import { Channel } from "#core/relay/channel.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { freePort } from "#test/support/free_port.ts";

/** The modules that a function in the sandbox gets. */
interface Modules {
  readonly net: typeof import("node:net");
  readonly tls: typeof import("node:tls");
  readonly http: typeof import("node:http");
  readonly https: typeof import("node:https");
  readonly http2: typeof import("node:http2");
  readonly dns: typeof import("node:dns");
  readonly dgram: typeof import("node:dgram");
  readonly undici: typeof import("undici");
  readonly events: typeof import("node:events");
  readonly streams: typeof import("node:stream");
}

let folder: string;
let worker: Worker;
let channel: Channel;
let broker: Broker;
let servers: SandboxServers;
let echo: Server;
let web: HttpServer;
let secure: Http2SecureServer;
let ca: string;
/** Addresses and names with ports that are granted at the moment. */
const granted = new Set<string>();
/** The addresses of names. */
const names = new Map<string, readonly string[]>();
const refused: string[] = [];
/** Ports that may be listened on. */
const ports = new Set<number>();

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;
const lookup = ((name: string, _options: object, callback: (...result: unknown[]) => void) => {
  const found = names.get(name);
  if (found === undefined) callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" }));
  else
    callback(
      null,
      found.map((address) => ({ address, family: 4 })),
    );
}) as unknown as LookupFunction;

/** Runs a function in the sandbox. It sees none of the variables around it. */
function inside<T>(run: (modules: Modules, ...values: never[]) => T, ...values: unknown[]): Promise<Awaited<T>> {
  return channel.call("run", String(run), values) as Promise<Awaited<T>>;
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-network-"));
  const made = await makeSelfSigned(["api.example"]);
  ca = made.certificate;
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  web = createHttp((request, response) => {
    if (request.url === "/away") response.writeHead(302, { location: "http://internal.example:8081/" }).end();
    else if (request.method === "POST") request.pipe(response);
    else response.end(`hello from ${request.headers.host}`);
  });
  secure = createHttp2({ key: made.key, cert: made.certificate, allowHTTP1: true }, (_request, response) => {
    response.end("secure");
  });
  for (const server of [echo, web, secure]) await once(server.listen(0, "127.0.0.1"), "listening");
  const path = join(folder, "dials");
  worker = new Worker(new URL("sandbox_thread.ts", import.meta.url), {
    workerData: { path, ca },
    execArgv: ["--conditions=source"],
  });
  const listening = Promise.withResolvers<void>();
  broker = new Broker({
    grant: {
      allows: (host, port) => granted.has(`${host}:${port}`),
      refusal: (host, port) => {
        refused.push(`${host}:${port}`);
        return Object.assign(new Error(`it may not connect to ${host}:${port}`), { code: "PERMISSION_DENIED" });
      },
    },
    open: () => connect({ path, allowHalfOpen: true }),
    max: 20,
    lookup,
  });
  channel = new Channel(
    { postMessage: (message) => worker.postMessage(message), on: (event, listener) => worker.on(event, listener) },
    {
      dial: (host: string, port: number) => broker.dial(host, port),
      openPort: (address: unknown, port: unknown) => servers.listen(address, port),
      closePort: (id: unknown) => servers.unlisten(id),
      listening: () => listening.resolve(),
    },
  );
  servers = new SandboxServers({
    module: "shop",
    ports: new ModulePorts(),
    broker,
    check: (port) => {
      if (!ports.has(port)) throw Object.assign(new Error("not granted"), { code: "PERMISSION_DENIED" });
    },
    accepted: (server, ends) => channel.notify("accepted", server, ends),
  });
  await listening.promise;
});

after(async () => {
  servers.close();
  broker.close();
  await worker.terminate();
  for (const server of [echo, web, secure]) server.close();
  web.closeAllConnections();
  await rm(folder, { recursive: true });
});

beforeEach(() => {
  granted.clear();
  names.clear();
  refused.length = 0;
  names.set("api.example", ["127.0.0.1"]);
  for (const server of [echo, web, secure]) {
    granted.add(`127.0.0.1:${portOf(server)}`);
    granted.add(`api.example:${portOf(server)}`);
  }
});

test("a socket connects by name, carries bytes both ways, and shows both ends", async () => {
  const seen = await inside(async ({ net, events, streams }, port: never) => {
    const socket = net.connect({ host: "api.example", port });
    const before = [socket.connecting, socket.pending, socket.readyState];
    socket.end("over there");
    await events.once(socket, "connect");
    const { remoteAddress, remotePort, remoteFamily, connecting, pending } = socket;
    const text = await new Response(streams.Readable.toWeb(socket) as never).text();
    if (!socket.closed) await events.once(socket, "close");
    return {
      before,
      remoteAddress,
      isPort: remotePort === port,
      remoteFamily,
      connecting,
      pending,
      text,
      bytesRead: socket.bytesRead,
    };
  }, portOf(echo));
  assert.deepEqual(seen, {
    before: [true, true, "opening"],
    remoteAddress: "127.0.0.1",
    isPort: true,
    remoteFamily: "IPv4",
    connecting: false,
    pending: false,
    text: "over there",
    bytesRead: 10,
  });
});

test("a socket that is made first and connected later works, as database clients do", async () => {
  const text = await inside(async ({ net, events }, port: never) => {
    const socket = new net.Socket();
    const connected = new Promise<void>((resolve) => void socket.connect(port, "api.example", resolve));
    await connected;
    socket.setNoDelay(true).setKeepAlive(true).write("later");
    const [piece] = (await events.once(socket, "data")) as [Buffer];
    socket.destroy();
    await events.once(socket, "close");
    return piece.toString();
  }, portOf(echo));
  assert.equal(text, "later");
});

test("a host that is not granted is refused with the error of the grant", async () => {
  for (const host of ["other.example", "127.0.0.2", "localhost", "::1", "169.254.169.254", "[::ffff:127.0.0.1]"]) {
    const code = await inside(
      async ({ net }, name: never, port: never) => {
        const socket = net.connect({ host: name, port });
        return await new Promise(
          (resolve) => void socket.on("error", (error: Error & { code?: string }) => resolve(error.code)),
        );
      },
      host,
      portOf(echo),
    );
    assert.equal(code, "PERMISSION_DENIED", host);
  }
  assert.equal(refused.length, 6);
});

test("a granted name that leads to addresses which are not public is refused by the address", async () => {
  for (const address of [
    "10.0.0.1",
    "127.0.0.2",
    "192.168.1.1",
    "169.254.169.254",
    "::1",
    "::ffff:127.0.0.1",
    "fe80::1",
    "fd00::1",
    "64:ff9b::7f00:1",
    "0.0.0.0",
  ]) {
    names.set("rebound.example", [address]);
    granted.add("rebound.example:80");
    await assert.rejects(
      broker.dial("rebound.example", 80),
      { code: "PERMISSION_DENIED", message: `it may not connect to ${address}:80` },
      address,
    );
  }
});

test("the same name is resolved again for each connection", async () => {
  granted.add(`changing.example:${portOf(echo)}`);
  names.set("changing.example", ["127.0.0.1"]);
  const connectOnce = async ({ net, events }: Modules, port: never) => {
    const socket = net.connect({ host: "changing.example", port });
    try {
      await events.once(socket, "connect");
      return "connected";
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      socket.destroy();
    }
  };
  assert.equal(await inside(connectOnce, portOf(echo)), "connected");
  names.set("changing.example", ["10.1.1.1"]);
  assert.equal(await inside(connectOnce, portOf(echo)), "PERMISSION_DENIED");
});

test("errors of the network keep their codes", async () => {
  granted.add("missing.example:80");
  await assert.rejects(broker.dial("missing.example", 80), { code: "ENOTFOUND" });
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const port = portOf(closed);
  closed.close();
  granted.add(`127.0.0.1:${port}`);
  const code = await inside(async ({ net }, at: never) => {
    const socket = net.connect(at, "127.0.0.1");
    return await new Promise(
      (resolve) => void socket.on("error", (error: Error & { code?: string }) => resolve(error.code)),
    );
  }, port);
  assert.equal(code, "ECONNREFUSED");
});

test("node:http, fetch and undici go through the broker, and a redirect is checked again", async () => {
  const seen = await inside(async ({ http, undici, events }, port: never) => {
    const url = `http://api.example:${port}/`;
    const agent = new http.Agent({ keepAlive: true });
    const texts: string[] = [];
    for (let time = 0; time < 2; time += 1) {
      const request = http.get(url, { agent });
      const [response] = (await events.once(request, "response")) as [AsyncIterable<Buffer>];
      let text = "";
      for await (const piece of response) text += piece;
      texts.push(text);
    }
    agent.destroy();
    texts.push(await (await fetch(url)).text());
    texts.push(await (await undici.request(url)).body.text());
    const away = await fetch(`${url}away`).catch((error: { cause?: { code?: string } }) => error.cause?.code);
    return [...texts, away];
  }, portOf(web));
  const hello = `hello from api.example:${portOf(web)}`;
  assert.deepEqual(seen, [hello, hello, hello, hello, "PERMISSION_DENIED"]);
  assert.deepEqual(refused, ["internal.example:8081"]);
});

test("TLS is spoken within the sandbox, by node:tls, node:https, node:http2 and fetch", async () => {
  const seen = await inside(async ({ tls, https, http2, events, undici }, port: never) => {
    const { ca } = globalThis as unknown as { ca: string };
    const socket = tls.connect({ host: "api.example", port, ca, servername: "api.example", ALPNProtocols: ["h2"] });
    await events.once(socket, "secureConnect");
    const secured = [socket.authorized, socket.alpnProtocol, socket.getPeerCertificate().subject.CN !== ""];
    socket.destroy();
    const wrong = tls.connect({ host: "127.0.0.1", port, ca, servername: "wrong.example" });
    const [error] = (await events.once(wrong, "error").catch((cause) => [cause])) as [{ code?: string }];
    const request = https.get({ host: "api.example", port, ca });
    const [response] = (await events.once(request, "response")) as [AsyncIterable<Buffer>];
    let text = "";
    for await (const piece of response) text += piece;
    const session = http2.connect(`https://api.example:${port}`, { ca });
    const stream = session.request({ ":path": "/" });
    let second = "";
    for await (const piece of stream) second += piece;
    session.close();
    const dispatcher = new undici.Agent({ connect: { ca } });
    const third = await (await undici.request(`https://api.example:${port}/`, { dispatcher })).body.text();
    await dispatcher.close();
    return { secured, error: error.code, text, second, third };
  }, portOf(secure));
  assert.deepEqual(seen, {
    secured: [true, "h2", true],
    error: "ERR_TLS_CERT_ALTNAME_INVALID",
    text: "secure",
    second: "secure",
    third: "secure",
  });
});

test("20 MB pass both ways with backpressure", async () => {
  const size = await inside(async ({ undici, streams }, port: never) => {
    const piece = Buffer.alloc(1 << 16, 7);
    let left = 320;
    const body = new streams.Readable({
      read() {
        this.push(left-- > 0 ? piece : null);
      },
    });
    const response = await undici.request(`http://api.example:${port}/`, { method: "POST", body });
    let bytes = 0;
    for await (const part of response.body) {
      bytes += part.length;
      if (bytes % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return bytes;
  }, portOf(web));
  assert.equal(size, 320 << 16);
});

test("a socket times out, can be destroyed before it is connected, and ends when the broker closes", async () => {
  const seen = await inside(async ({ net, events }, port: never) => {
    const idle = net.connect(port, "api.example");
    idle.setTimeout(20);
    await events.once(idle, "timeout");
    idle.destroy();
    const early = net.connect(port, "api.example");
    early.destroy();
    await events.once(early, "close");
    return "both";
  }, portOf(echo));
  assert.equal(seen, "both");
  await inside(async ({ net, events }, port: never) => {
    const socket = net.connect(port, "api.example");
    socket.on("error", () => undefined);
    (globalThis as { closing?: unknown }).closing = events.once(socket, "close");
    await events.once(socket, "connect");
  }, portOf(echo));
  broker.close();
  assert.deepEqual(await inside(() => (globalThis as { closing?: unknown }).closing), [false]);
});

test("UDP, sockets of the system, ports that it chooses and lookups of names are refused with an error that names them", async () => {
  const seen = await inside(async ({ net, dgram, dns, events }) => {
    const codes: unknown[] = [];
    const codeOf = (run: () => unknown) => {
      try {
        run();
        codes.push("passed");
      } catch (error) {
        codes.push((error as { code: string }).code);
      }
    };
    codeOf(() => dgram.createSocket("udp4"));
    codeOf(() => net.createServer().listen(0));
    codeOf(() => net.createServer().listen());
    codeOf(() => net.createServer().listen({ fd: 3 }));
    codeOf(() => net.createServer().listen("/tmp/some.sock"));
    codeOf(() => net.createServer().listen({ path: "/tmp/some.sock" }));
    const [error] = (await events.once(net.connect("/tmp/some.sock"), "error").catch((cause) => [cause])) as [
      { code: string },
    ];
    codes.push(error.code);
    codes.push(await dns.promises.resolve4("api.example").catch((cause: { code: string }) => cause.code));
    codes.push(await new dns.promises.Resolver().resolveMx("api.example").catch((cause) => cause.code));
    codes.push(await dns.promises.lookup("api.example").catch((cause: { code: string }) => cause.code));
    codes.push(
      await new Promise((resolve) =>
        dns.lookup("api.example", (cause) => resolve((cause as { code?: string } | null)?.code)),
      ),
    );
    return codes;
  });
  assert.deepEqual(seen, Array(11).fill("PERMISSION_DENIED"));
});

test("connections have a limit", async () => {
  const small = new Broker({
    grant: { allows: () => true, refusal: () => new Error("refused") },
    open: () => connect({ path: join(folder, "dials") }),
    max: 1,
    lookup,
  });
  await small.dial("127.0.0.1", portOf(echo));
  await assert.rejects(small.dial("127.0.0.1", portOf(echo)), { code: "EMFILE" });
  small.close();
});

test("names of one module are resolved one after the other", async () => {
  let running = 0;
  let most = 0;
  const slow = new Broker({
    grant: { allows: () => true, refusal: () => new Error("refused") },
    open: () => connect({ path: join(folder, "dials") }),
    max: 10,
    lookup: ((_name: string, _options: object, callback: (error: Error) => void) => {
      most = Math.max(most, (running += 1));
      setTimeout(() => {
        running -= 1;
        callback(new Error("not found"));
      }, 5);
    }) as unknown as LookupFunction,
  });
  const dials = ["a.example", "b.example", "c.example"].map((name) =>
    assert.rejects(slow.dial(name, 443), /not found/),
  );
  await Promise.all(dials);
  assert.equal(most, 1);
});

test("a name is resolved in the form in which it was checked", async () => {
  const resolved: string[] = [];
  const strict = new Broker({
    grant: { allows: (host) => host === "api.example", refusal: (host) => new Error(`refused ${host}`) },
    open: () => connect({ path: join(folder, "dials") }),
    max: 1,
    lookup: ((name: string, _options: object, callback: (error: Error) => void) => {
      resolved.push(name);
      callback(new Error("not found"));
    }) as unknown as LookupFunction,
  });
  for (const name of ["api.example/.evil.test", "api.example#.evil.test", "%61pi.example", "API.example."])
    await assert.rejects(strict.dial(name, 443), /not found/, name);
  assert.deepEqual(
    resolved,
    Array.from({ length: 4 }, () => "api.example"),
  );
  for (const name of ["user@api.example", "[::1]", "0x7f.1", "127.1", "api .example"])
    await assert.rejects(strict.dial(name, 443), /refused/, name);
});

test("a dial that is malformed is refused", async () => {
  for (const [host, port] of [
    ["", 80],
    ["a".repeat(256), 80],
    ["api.example", 0],
    ["api.example", 65_536],
    ["api.example", "80"],
    [{}, 80],
    [null, 1],
  ]) {
    await assert.rejects(broker.dial(host, port), TypeError);
  }
});

/**
 * Returns the code of the error with which a connection to a port fails; undefined if it is open.
 */
async function faultAt(port: number): Promise<string | undefined> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  } finally {
    socket.destroy();
  }
}

test("a server of node:http listens at the loopback address, serves clients, and closes its port", async () => {
  const port = await freePort();
  ports.add(port);
  const address = await inside(async ({ http, events }, at: never) => {
    const server = http.createServer(async (request, response) => {
      let text = "";
      for await (const piece of request) text += piece;
      response.end(`${request.method} ${text} ${request.socket.remoteAddress} ${request.socket.localPort}`);
    });
    (globalThis as { server?: unknown }).server = server;
    await events.once(server.listen(at), "listening");
    return [server.listening, server.address()];
  }, port);
  assert.deepEqual(address, [true, { address: "127.0.0.1", family: "IPv4", port }]);
  for (const body of ["one", "two"]) {
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body });
    assert.equal(await response.text(), `POST ${body} 127.0.0.1 ${port}`);
  }
  const closed = await inside(async () => {
    const { server } = globalThis as unknown as { server: HttpServer };
    await server[Symbol.asyncDispose]();
    return [server.listening, server.address()];
  });
  assert.deepEqual(closed, [false, null]);
  assert.equal(await faultAt(port), "ECONNREFUSED");
});

test("servers of node:https and node:http2 speak TLS within the sandbox", async () => {
  const { key, certificate } = await makeSelfSigned(["api.example"]);
  const port = await freePort();
  ports.add(port);
  await inside(
    async ({ http2, events }, at: never, pair: never) => {
      const server = http2.createSecureServer({ ...(pair as object), allowHTTP1: true }, (request, response) => {
        response.end(`secure ${request.httpVersion}`);
      });
      (globalThis as { secure?: unknown }).secure = server;
      await events.once(server.listen({ port: at, host: "localhost" }), "listening");
    },
    port,
    { key, cert: certificate },
  );
  const { Agent, request } = await import("undici");
  for (const [allowH2, version] of [
    [true, "2.0"],
    [false, "1.1"],
  ] as const) {
    const dispatcher = new Agent({ allowH2, connect: { ca: certificate, servername: "api.example" } });
    const { body } = await request(`https://127.0.0.1:${port}/`, { dispatcher });
    assert.equal(await body.text(), `secure ${version}`);
    await dispatcher.close();
  }
  await inside(() => void (globalThis as unknown as { secure: Http2SecureServer }).secure.close());
});

test("a server keeps its connections after its port is closed, counts them, and listens again", async () => {
  const port = await freePort();
  ports.add(port);
  const listenAgain = () =>
    inside(async ({ net, events }, at: never) => {
      const known = globalThis as unknown as { echo?: Server; closed?: boolean };
      known.echo ??= net.createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
      known.echo.maxConnections = 1;
      known.closed = false;
      known.echo.once("close", () => {
        known.closed = true;
      });
      await events.once(known.echo.listen(at, "127.0.0.1"), "listening");
    }, port);
  await listenAgain();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write("first");
  assert.equal(String((await once(socket, "data"))[0]), "first");
  const second = connect(port, "127.0.0.1").on("error", () => undefined);
  await once(second, "close");
  const counted = await inside(async () => {
    const { echo: server } = globalThis as unknown as { echo: Server };
    const count = await new Promise((resolve) => server.getConnections((_error, found) => resolve(found)));
    server.close();
    return [count, server.listening];
  });
  assert.deepEqual(counted, [1, false]);
  assert.equal(await faultAt(port), "ECONNREFUSED");
  const isClosed = () => inside(() => (globalThis as unknown as { closed: boolean }).closed);
  assert.equal(await isClosed(), false);
  socket.end("last");
  assert.equal(String((await once(socket, "data"))[0]), "last");
  await once(socket, "close");
  while (!(await isClosed())) await new Promise(setImmediate);
  await listenAgain();
  assert.equal(await faultAt(port), undefined);
  await inside(() => void (globalThis as unknown as { echo: Server }).echo.close());
});

test("a port that is not granted, is taken, or is listened on twice fails with the code of the reason", async () => {
  const port = await freePort();
  const taken = portOf(echo);
  ports.add(taken);
  const failed = (at: number, address: string | undefined) =>
    inside(
      ({ net, events }, ...[number, host]: never[]) =>
        events
          .once(net.createServer().listen({ port: number, host }), "listening")
          .catch((error: { code: string }) => error.code),
      at,
      address,
    );
  assert.equal(await failed(port, undefined), "PERMISSION_DENIED");
  assert.equal(await failed(taken, "127.0.0.1"), "EADDRINUSE");
  assert.equal(await failed(taken, "192.0.2.1"), "EADDRNOTAVAIL");
  ports.add(port);
  const twice = await inside(async ({ net, events }, at: never) => {
    const server = net.createServer();
    await events.once(server.listen(at), "listening");
    try {
      server.listen(at);
      return "listens twice";
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      server.close();
      await events.once(server, "close");
    }
  }, port);
  assert.equal(twice, "ERR_SERVER_ALREADY_LISTEN");
});

test("requests to listen that are malformed are refused, and servers have a limit", async () => {
  for (const [address, port] of [
    ["api.example", 80],
    ["", 80],
    [1, 80],
    [{}, 80],
    [undefined, 0],
    [undefined, 65_536],
    [undefined, "80"],
    [undefined, 8080.5],
  ]) {
    await assert.rejects(servers.listen(address, port), TypeError);
  }
  const port = await freePort();
  ports.add(port);
  const open = await Promise.all(
    Array.from({ length: 64 }, (_, at) => servers.listen(`127.0.0.${at + 1}`, port).then(({ id }) => id)),
  );
  await assert.rejects(servers.listen("127.0.0.65", port), { code: "EMFILE" });
  for (const id of open) await servers.unlisten(id);
  await servers.unlisten("none");
});

test("the newest of several processes of a module gets the connections of their port", async () => {
  const modulePorts = new ModulePorts();
  const port = await freePort();
  const seen: string[] = [];
  const open = (module: string, name: string) =>
    modulePorts.open(module, "127.0.0.1", port, (socket) => {
      seen.push(name);
      socket.destroy();
    });
  const connectOnce = async () => {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    await once(socket, "close");
  };
  const first = await open("shop", "first");
  const [second, third] = await Promise.all([open("shop", "second"), open("shop", "third")]);
  await assert.rejects(open("other", "other"), { code: "EADDRINUSE" });
  await connectOnce();
  third.release();
  await connectOnce();
  first.release();
  await connectOnce();
  second.release();
  assert.deepEqual(seen, ["third", "second", "second"]);
  assert.equal(await faultAt(port), "ECONNREFUSED");
  const next = await open("other", "other");
  next.release();
});
