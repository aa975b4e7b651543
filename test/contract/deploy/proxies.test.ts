/**
 * Tests the configurations for nginx and Caddy: each passes on everything that a client sends and
 * receives.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, type RequestOptions, request } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import type { Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { project } from "../docs/guides/support.ts";

const NAME = "www.example.org";
/**
 * Timeout in milliseconds for a proxy that does not start, and for a response that does not arrive.
 */
const LIMIT = { timeout: 300_000 };
/** An address of this machine that is not in trusted_proxies. */
const CLIENT = "127.0.0.2";

interface ProxySetup {
  readonly folder: string;
  readonly port: number;
  readonly plainPort: number;
  readonly hostPort: number;
}

interface Proxy {
  readonly program: string;
  readonly file: string;
  /** Returns the shipped configuration with the ports and the certificate of this setup. */
  adapted(text: string, setup: ProxySetup): string;
  args(file: string): readonly string[];
}

const nginx: Proxy = {
  program: "nginx",
  file: "nginx.conf",
  adapted: (text, { folder, port, plainPort, hostPort }) => `
    daemon off; ${process.getuid?.() === 0 ? "user root;" : ""} pid ${folder}/pid; error_log stderr error;
    events {}
    http {
      access_log off;
      ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
      ${text
        .replace("127.0.0.1:8080", `127.0.0.1:${hostPort}`)
        .replace("listen 80;", `listen 127.0.0.1:${plainPort};`)
        .replace("listen 443", `listen 127.0.0.1:${port}`)
        .replace(/(ssl_certificate) .*;/, `$1 ${folder}/crt;`)
        .replace(/(ssl_certificate_key) .*;/, `$1 ${folder}/key;`)}
    }`,
  args: (file) => ["-c", file, "-e", "stderr"],
};

const caddy: Proxy = {
  program: "caddy",
  file: "Caddyfile",
  adapted: (text, { folder, port, plainPort, hostPort }) => `{
      admin off
      http_port ${plainPort}
      default_bind 127.0.0.1
    }
    ${text
      .replace("127.0.0.1:8080", `127.0.0.1:${hostPort}`)
      .replace(`${NAME} {`, `${NAME}:${port} {\n tls ${folder}/crt ${folder}/key`)}`,
  args: (file) => ["run", "--adapter", "caddyfile", "--config", file],
};

for (const proxy of [nginx, caddy]) {
  const isThere = spawnSync(proxy.program, [proxy.program === "nginx" ? "-v" : "version"]).status === 0;
  describe(`behind ${proxy.program}`, { skip: isThere ? false : `needs ${proxy.program}`, ...LIMIT }, () => {
    /** Calls of the module. A test waits for one, and then lets it go on. */
    const begun = Promise.withResolvers<number>();
    const goOn = Promise.withResolvers<void>();
    let folder = "";
    let port = 0;
    let server: TestHost;
    let running: ChildProcess;
    let agent: Agent;

    const probe = {
      name: "probe",
      load(module: Module) {
        module.depends("http");
        module.provides("http", {
          streaming_uploads: true,
          route: {
            "GET /who": ({ request: { ip, secure, headers, forwarded_host } }) => ({
              body: JSON.stringify([ip, secure, headers.host, forwarded_host]),
            }),
            "GET /raw/*": ({ request: { url } }) => ({ body: url.raw_path }),
            "POST /count": async (event) => {
              let bytes = 0;
              for await (const piece of event.request.body_stream) {
                bytes += piece.length;
                begun.resolve(bytes);
              }
              return { body: String(bytes) };
            },
            "GET /pieces": () => ({
              body: (async function* () {
                yield "first";
                await goOn.promise;
                yield " second";
              })(),
            }),
            "WS /echo": async (event) => {
              const socket = event.accept();
              for await (const message of socket) socket.send(message);
            },
          },
        });
      },
    };

    function ask(path: string, options: RequestOptions = {}): ClientRequest {
      return request(`https://${NAME}:${port}/probe${path}`, { agent, ...options });
    }

    async function responseTo(call: ClientRequest): Promise<IncomingMessage> {
      const [response] = await once(call, "response");
      return response.setEncoding("utf8");
    }

    async function textOf(call: ClientRequest): Promise<string> {
      return (await (await responseTo(call.end())).toArray()).join("");
    }

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "modhost-proxy-"));
      const [free = 0, plainPort = 0, hostPort = 0] = await freePorts(3);
      port = free;
      const { certificate, key } = await makeSelfSigned([NAME]);
      await writeFile(join(folder, "crt"), certificate);
      await writeFile(join(folder, "key"), key, { mode: 0o600 });
      const shipped = await readFile(join(project, "config/deploy", proxy.file), "utf8");
      const file = join(folder, proxy.file);
      await writeFile(file, proxy.adapted(shipped, { folder, port, plainPort, hostPort }));
      server = await createTestHost({
        modules: [probe],
        config: { http_ports: [hostPort], http_external_url: `https://${NAME}/` },
      });
      agent = new Agent({
        ca: certificate,
        localAddress: CLIENT,
        lookup: (_name, { all }, done) =>
          all === true ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4),
      });
      running = spawn(proxy.program, proxy.args(file), {
        env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder },
      });
      let said = "";
      running.stderr?.on("data", (data) => {
        said += data;
      });
      await eventually("the proxy responds", async () => {
        assert.equal(running?.exitCode, null, said);
        return (await textOf(ask("/who")).catch(() => "")) !== "";
      });
    }, LIMIT);

    after(async () => {
      agent?.destroy();
      if (running?.exitCode === null) {
        running.kill("SIGTERM");
        await once(running, "exit");
      }
      await server?.stop();
      await rm(folder, { recursive: true, force: true });
    });

    test("the client's address, scheme and host arrive, and nobody can forge them", async () => {
      const forged = {
        "X-Forwarded-For": "192.0.2.1",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "other.example",
        Forwarded: "for=192.0.2.2;host=other.example",
      };
      const seen = JSON.parse(await textOf(ask("/who", { headers: forged })));
      assert.deepEqual(seen, [CLIENT, true, `${NAME}:${port}`, `${NAME}:${port}`]);
    });

    test("paths arrive as they were sent", async () => {
      assert.equal(await textOf(ask("/raw/a%2Fb//c%20d")), "/probe/raw/a%2Fb//c%20d");
    });

    test("an upload of any size arrives piece by piece", async () => {
      const call = ask("/count", { method: "POST" });
      call.write("first");
      assert.equal(await begun.promise, 5);
      const piece = Buffer.alloc(1024 * 1024);
      for (let at = 0; at < 12; at += 1) call.write(piece);
      assert.equal(await textOf(call), String(5 + 12 * piece.length));
    });

    test("a response arrives piece by piece", async () => {
      const response = await responseTo(ask("/pieces").end());
      const pieces = response[Symbol.asyncIterator]();
      assert.equal((await pieces.next()).value, "first");
      goOn.resolve();
      assert.equal((await pieces.next()).value, " second");
    });

    test("websockets open", async () => {
      const socket = new WebSocket(`wss://${NAME}:${port}/probe/echo`, { agent, origin: `https://${NAME}` });
      await once(socket, "open");
      socket.send("hello");
      const [data] = await once(socket, "message");
      assert.equal(String(data), "hello");
      socket.terminate();
    });
  });
}

/** Returns ports that are free at this moment. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((each) => once(each, "listening")));
  const ports = servers.map((each) => (each.address() as AddressInfo).port);
  for (const each of servers) each.close();
  return ports;
}
