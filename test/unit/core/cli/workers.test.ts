/** `modhost run --workers N`: several processes serve one server. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/free_port.ts";
import { rawExchange } from "#test/support/raw.ts";
import { untilGone } from "#test/support/takeover_load.ts";
import { numberByHttp2, numberByTls } from "./over_tls.ts";
import { commanded, type Got, own, type Serving, serving } from "./workers_server.ts";

describe("a server of two processes", { concurrency: 1, timeout: 1_200_000 }, () => {
  let shared: Serving;
  let adminPort: number;
  before(async () => {
    adminPort = await freePort();
    shared = await serving({ admin_port: adminPort });
  });
  after(() => shared[Symbol.asyncDispose]());

  test("serves in both; a shared module runs only in the primary, and sees the address of the client", async () => {
    const server = shared;
    const processes = await server.both();
    const first = await server.first();
    assert.ok(processes.has(first));
    for (let count = 1; count <= 12; count += 1) assert.equal((await server.get("/kept/count")).text, String(count));
    for (let sent = 0; sent < 6; sent += 1) {
      const { text, local } = await server.get("/kept/client");
      assert.deepEqual(JSON.parse(text), ["127.0.0.1", local]);
    }
    assert.equal((await server.get("/health/ready")).status, 200);
    assert.equal((await server.get("/nowhere")).status, 404);
  });

  test("streams a body to the shared module and its response back, with trailers, and relays websockets", async () => {
    const server = shared;
    await server.both();
    for (let round = 0; round < 6; round += 1) {
      const { text, trailer } = await upper(server.port);
      assert.deepEqual([text, trailer], ["FIRST SECOND", "the end"]);
      assert.equal(await echo(server.port, "hello"), `${await server.first()} hello`);
    }
  });

  test("serves the port of the Admin API only in the primary, and requests of both processes there need a token", async () => {
    const server = shared;
    const first = await server.first();
    for (let sent = 0; sent < 4; sent += 1) {
      const response = await fetch(`http://127.0.0.1:${adminPort}/admin/api/status`, {
        headers: { Connection: "close" },
      });
      assert.equal(((await response.json()) as { pid: number }).pid, first);
    }
    const seen = new Set<string>();
    await eventually("both processes have asked", async () => {
      const { text } = await server.get(`/a/fetch/127.0.0.1:${adminPort}/admin/api/config/file`);
      assert.match(text, /^\d+ 403$/);
      return seen.add(text).size === 2;
    });
  });

  test("responds in either process to a probe of HTTP/1.0 without a host", async () => {
    const server = shared;
    const first = await server.first();
    await eventually("the other process has taken one", async () => {
      // Only the first request of a connection chooses its process. A later one is relayed by the
      // process that has the connection.
      const own = "GET /a/pid HTTP/1.1\r\nHost: localhost\r\n\r\n";
      const received = await rawExchange(server.port, `${own}GET /kept/pid HTTP/1.0\r\n\r\n`);
      const [, pid, second] = /^.*?\r\n\r\n(\d+)(HTTP.*)$/s.exec(received) ?? [];
      assert.match(String(second), new RegExp(`^HTTP/1.1 200 .*\r\n\r\n${first}$`, "s"));
      return Number(pid) !== first;
    });
  });

  test("reports the metrics of both as one", async () => {
    const server = shared;
    await server.both();
    const counted = async () => {
      const { text } = await server.get("/metrics");
      const line = text
        .split("\n")
        .find((each) => each.startsWith('modhost_http_requests_total{module="http_a",route="GET /a/text"'));
      return [Number(line?.split(" ").at(-1) ?? 0), Number(/^modhost_workers (\d+)$/m.exec(text)?.[1])];
    };
    await Promise.all(Array.from({ length: 40 }, () => server.get("/a/text")));
    await eventually("all requests are counted", async () => (await counted())[0] === 40);
    assert.equal((await counted())[1], 2);
  });

  /** Returns the processes that respond to several requests, each on its own connection. */
  const respondingProcesses = async (ask: () => Promise<Got>) => {
    const responses = await Promise.all(Array.from({ length: 6 }, ask));
    return [...new Set(responses.map(({ text }) => Number(text)))];
  };

  test("routes a client of a sticky module to one process, by its address behind trusted proxies", async () => {
    const { get, both } = shared;
    const processes = await both();
    const found = new Set<number>();
    for (let host = 1; host <= 4; host += 1) {
      const proxied = { "X-Forwarded-For": `127.0.0.${host}` };
      const direct = await respondingProcesses(() =>
        get("/cart/pid", { "X-Forwarded-For": "192.0.2.1" }, `127.0.0.${host}`),
      );
      assert.deepEqual(
        [direct.length, ...(await respondingProcesses(() => get("/cart/pid", proxied, "127.0.0.99")))],
        [1, ...direct],
      );
      found.add(direct[0] as number);
    }
    assert.deepEqual([...found].sort(), [...processes].sort());
  });

  test("routes a client of a sticky module to one process by a cookie, if the module says so", async () => {
    const { get, both } = shared;
    const processes = await both();
    const found = new Set<number>();
    await eventually("both processes have given a cookie", async () => {
      const { text, cookies } = await get("/shop/pid");
      assert.match(cookies.join(), /^modhost_process=[0-9a-f]{16}; Path=\/; HttpOnly; SameSite=Lax$/);
      const headers = { Cookie: cookies[0]?.split(";")[0] };
      assert.deepEqual(await respondingProcesses(() => get("/shop/pid", headers)), [Number(text)]);
      assert.deepEqual((await get("/shop/pid", headers)).cookies, []);
      found.add(Number(text));
      return found.size === 2;
    });
    assert.deepEqual([...found].sort(), [...processes].sort());
    for (const forged of ["99999999999999ff", "2", "x".repeat(4000)]) {
      const { status, text } = await get("/shop/pid", { Cookie: `modhost_process=${forged}` });
      assert.deepEqual([status, processes.has(Number(text))], [200, true]);
    }
    assert.deepEqual((await get("/a/pid")).cookies, []);
    const names = (await get("/shop/set")).cookies.map((line) => line.split("=")[0]);
    assert.deepEqual(names.sort(), ["modhost_process", "own"]);
  });

  test("routes a client of a sticky module to one process over TLS, too, with HTTP/1.1 and HTTP/2", async () => {
    const { securePort, get, both } = shared;
    const processes = await both();
    const found = new Set<number>();
    for (let host = 1; host <= 4; host += 1) {
      const localAddress = `127.0.0.${host}`;
      const plain = Number((await get("/cart/pid", {}, localAddress)).text);
      for (let times = 0; times < 3; times += 1) {
        assert.deepEqual(await numberByHttp2(securePort, ["/cart/pid", "/cart/pid"], { localAddress }), [plain, plain]);
        assert.equal(await numberByTls(securePort, "/cart/pid", { localAddress }), plain);
      }
      found.add(plain);
    }
    assert.deepEqual([...found].sort(), [...processes].sort());
    const { text, cookies } = await get("/shop/pid");
    const cookie = String(cookies[0]?.split(";")[0]);
    for (let times = 0; times < 3; times += 1) {
      const paths = ["/shop/pid", "/a/pid", "/shop/pid"];
      const [first, , last] = await numberByHttp2(securePort, paths, { cookie });
      assert.deepEqual([first, last], [Number(text), Number(text)]);
      assert.equal(await numberByTls(securePort, "/shop/pid", { cookie }), Number(text));
    }
  });

  test("is operated as one: a reload affects both one after the other under load, and a new process loads what they have loaded", async () => {
    await using server = await serving();
    const first = await server.first();
    const processes = await server.both();
    const [other] = [...processes].filter((pid) => pid !== first);
    let isOver = false;
    const lost: string[] = [];
    const texts = new Set<string>();
    const loading = Array.from({ length: 3 }, async () => {
      while (!isOver) {
        try {
          const { status, text } = await server.get("/a/text");
          if (status === 200) texts.add(text);
          else lost.push(`${status} ${text}`);
        } catch (error) {
          lost.push((error as Error).message);
        }
        await sleep(10);
      }
    });
    await writeFile(join(server.program.folder, "mod_http_a.mjs"), own("new"));
    const { result, steps } = await commanded(server, "reload", "http_a");
    assert.equal(result, "done");
    assert.equal(steps.at(-1).what, "process 2 has made the change");
    const after = await Promise.all(Array.from({ length: 12 }, () => server.get("/a/text")));
    assert.deepEqual(new Set(after.map(({ text }) => text)), new Set(["new"]));
    await writeFile(
      join(server.program.folder, "mod_http_a.mjs"),
      "export default () => { throw new Error('broken'); };",
    );
    assert.equal((await commanded(server, "reload", "http_a")).result, "failed");
    isOver = true;
    await Promise.all(loading);
    assert.deepEqual(lost, []);
    assert.deepEqual(await server.both(), processes);

    await writeFile(join(server.program.folder, "mod_http_a.mjs"), own("new"));
    await writeFile(join(server.program.folder, "mod_http_more.mjs"), own("more"));
    assert.equal((await commanded(server, "load", "./mod_http_more.mjs")).result, "done");
    process.kill(other as number, "SIGKILL");
    let now = await server.both();
    assert.ok(!now.has(other as number));
    const more = await Promise.all(Array.from({ length: 12 }, () => server.get("/more/pid")));
    for (const { status } of more) assert.equal(status, 200);
    const { processes: others } = await commanded(server, "status");
    assert.deepEqual(
      others.map(({ number, pid }: { number: number; pid: number }) => [number, now.has(pid)]),
      [[2, true]],
    );
    // No other process begins to run what the primary has unloaded.
    assert.equal((await commanded(server, "unload", "http_kept")).result, "done");
    const [second] = [...now].filter((pid) => pid !== first);
    process.kill(second as number, "SIGKILL");
    await eventually("another process serves", async () => {
      now = await server.pids();
      return now.size === 2 && !now.has(second as number);
    });
    const responses = await Promise.all(Array.from({ length: 12 }, () => server.get("/kept/pid")));
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([404]));
    server.kill("SIGKILL");
    for (const pid of now) await untilGone(pid, false);
  });

  test("replaces a process that is killed, and serves clients that connect in between", async () => {
    await using server = await serving();
    const before = await server.both();
    const first = await server.first();
    const other = [...before].find((pid) => pid !== first) as number;
    let address = "";
    for (let host = 1; address === ""; host += 1)
      if ((await server.get("/cart/pid", {}, `127.0.0.${host}`)).text === String(other)) address = `127.0.0.${host}`;
    process.kill(other, "SIGKILL");
    await untilGone(other, false);
    let next = 0;
    await eventually("another process serves", async () => {
      // A request on its way to the killed process is lost with it.
      const { status, text } = await server.get("/cart/pid", {}, address).catch(() => ({ status: 0, text: "0" }));
      next = Number(text);
      return status === 200 && next !== first;
    });
    assert.notEqual(next, other);
    assert.equal((await server.get("/kept/count")).text, "1");
    process.kill(first, "SIGKILL");
    await eventually("another first process serves", async () => {
      const { status, text } = await server.get("/kept/pid").catch(() => ({ status: 0, text: "" }));
      return status === 200 && Number(text) !== first;
    });
    server.kill("SIGTERM");
    const { stderr, code } = await server.ended;
    assert.equal(code, 0);
    assert.match(stderr, /Process 2 of 2 \(\d+\) has ended with SIGKILL: another one replaces it/);
    assert.match(stderr, /Process 1 of 2 \(\d+\) has ended with SIGKILL: another one replaces it/);
  });
});

/**
 * Sends a body in two pieces, the second when the first has come back, and returns the response.
 */
function upper(port: number): Promise<{ text: string; trailer: string | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path: "/kept/upper", method: "POST", agent: false }, (response) => {
      let text = "";
      response.on("data", (piece) => {
        if (text === "") sent.end(" second");
        text += piece;
      });
      response.on("end", () => resolve({ text, trailer: response.trailers["x-after"] })).on("error", reject);
    });
    sent.on("error", reject).write("first");
  });
}

function echo(port: number, message: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/kept/echo`);
    socket.onopen = () => socket.send(message);
    socket.onmessage = ({ data }) => {
      resolve(String(data));
      socket.close();
    };
    socket.onerror = () => reject(new Error("the websocket broke"));
  });
}
