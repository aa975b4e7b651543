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
import { type Got, own, type Serving, serving, told } from "./workers_server.ts";

describe("a server of two processes", { concurrency: 1, timeout: 1_200_000 }, () => {
  let shared: Serving;
  let adminPort: number;
  before(async () => {
    adminPort = await freePort();
    shared = await serving({ admin_port: adminPort });
  });
  after(() => shared[Symbol.asyncDispose]());

  test("serves with both of them; what is shared runs in the first alone, and knows the client", async () => {
    const server = shared;
    const processes = await server.both();
    const first = await server.first();
    assert.ok(processes.has(first));
    for (let count = 1; count <= 12; count += 1) assert.equal((await server.get("/kept/count")).text, String(count));
    for (let asked = 0; asked < 6; asked += 1) {
      const { text, local } = await server.get("/kept/client");
      assert.deepEqual(JSON.parse(text), ["127.0.0.1", local]);
    }
    assert.equal((await server.get("/health/ready")).status, 200);
    assert.equal((await server.get("/nowhere")).status, 404);
  });

  test("a body goes to the shared module as it comes, and its answer comes back with trailers; websockets, too", async () => {
    const server = shared;
    await server.both();
    for (let round = 0; round < 6; round += 1) {
      const { text, trailer } = await upper(server.port);
      assert.deepEqual([text, trailer], ["FIRST SECOND", "the end"]);
      assert.equal(await echo(server.port, "hello"), `${await server.first()} hello`);
    }
  });

  test("the first process alone serves the port of the Admin API, and requests that either process makes there need a token", async () => {
    const server = shared;
    const first = await server.first();
    for (let asked = 0; asked < 4; asked += 1) {
      const answer = await fetch(`http://127.0.0.1:${adminPort}/admin/api/status`, {
        headers: { Connection: "close" },
      });
      assert.equal(((await answer.json()) as { pid: number }).pid, first);
    }
    const seen = new Set<string>();
    await eventually("both processes have asked", async () => {
      const { text } = await server.get(`/a/fetch/127.0.0.1:${adminPort}/admin/api/config/file`);
      assert.match(text, /^\d+ 403$/);
      return seen.add(text).size === 2;
    });
  });

  test("a probe of HTTP/1.0 that names no host is answered, whichever process takes it", async () => {
    const server = shared;
    const first = await server.first();
    await eventually("the other process has taken one", async () => {
      // The second request of a connection is not steered: it is handed over where the first one is
      // answered.
      const own = "GET /a/pid HTTP/1.1\r\nHost: localhost\r\n\r\n";
      const told = await rawExchange(server.port, `${own}GET /kept/pid HTTP/1.0\r\n\r\n`);
      const [, pid, answer] = /^.*?\r\n\r\n(\d+)(HTTP.*)$/s.exec(told) ?? [];
      assert.match(String(answer), new RegExp(`^HTTP/1.1 200 .*\r\n\r\n${first}$`, "s"));
      return Number(pid) !== first;
    });
  });

  test("tells the figures of both as one", async () => {
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

  /** Processes that answer several requests, each on a connection of its own. */
  const answering = async (ask: () => Promise<Got>) => {
    const answers = await Promise.all(Array.from({ length: 6 }, ask));
    return [...new Set(answers.map(({ text }) => Number(text)))];
  };

  test("answers a client of a sticky module in one process, by its address as trusted proxies tell it", async () => {
    const { get, both } = shared;
    const processes = await both();
    const found = new Set<number>();
    for (let host = 1; host <= 4; host += 1) {
      const proxied = { "X-Forwarded-For": `127.0.0.${host}` };
      const direct = await answering(() => get("/cart/pid", { "X-Forwarded-For": "192.0.2.1" }, `127.0.0.${host}`));
      assert.deepEqual(
        [direct.length, ...(await answering(() => get("/cart/pid", proxied, "127.0.0.99")))],
        [1, ...direct],
      );
      found.add(direct[0] as number);
    }
    assert.deepEqual([...found].sort(), [...processes].sort());
  });

  test("answers a client of a sticky module in one process, by a cookie where the module says so", async () => {
    const { get, both } = shared;
    const processes = await both();
    const found = new Set<number>();
    await eventually("both processes have given a cookie", async () => {
      const { text, cookies } = await get("/shop/pid");
      assert.match(cookies.join(), /^modhost_process=[0-9a-f]{16}; Path=\/; HttpOnly; SameSite=Lax$/);
      const headers = { Cookie: cookies[0]?.split(";")[0] };
      assert.deepEqual(await answering(() => get("/shop/pid", headers)), [Number(text)]);
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

  test("answers a client of a sticky module in one process over TLS, too, by HTTP/1.1 and by HTTP/2", async () => {
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
      const asked = ["/shop/pid", "/a/pid", "/shop/pid"];
      const [first, , last] = await numberByHttp2(securePort, asked, { cookie });
      assert.deepEqual([first, last], [Number(text), Number(text)]);
      assert.equal(await numberByTls(securePort, "/shop/pid", { cookie }), Number(text));
    }
  });

  test("is operated as one: a reload rolls through both under load, and a new process has what was loaded", async () => {
    await using server = await serving();
    const first = await server.first();
    const processes = await server.both();
    const [other] = [...processes].filter((pid) => pid !== first);
    let isOver = false;
    const lost: string[] = [];
    const texts = new Set<string>();
    const asking = Array.from({ length: 3 }, async () => {
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
    const { result, steps } = await told(server, "reload", "http_a");
    assert.equal(result, "done");
    assert.equal(steps.at(-1).what, "process 2 has made the change");
    const after = await Promise.all(Array.from({ length: 12 }, () => server.get("/a/text")));
    assert.deepEqual(new Set(after.map(({ text }) => text)), new Set(["new"]));
    await writeFile(
      join(server.program.folder, "mod_http_a.mjs"),
      "export default () => { throw new Error('broken'); };",
    );
    assert.equal((await told(server, "reload", "http_a")).result, "failed");
    isOver = true;
    await Promise.all(asking);
    assert.deepEqual(lost, []);
    assert.deepEqual(await server.both(), processes);

    await writeFile(join(server.program.folder, "mod_http_a.mjs"), own("new"));
    await writeFile(join(server.program.folder, "mod_http_more.mjs"), own("more"));
    assert.equal((await told(server, "load", "./mod_http_more.mjs")).result, "done");
    process.kill(other as number, "SIGKILL");
    let now = await server.both();
    assert.ok(!now.has(other as number));
    const more = await Promise.all(Array.from({ length: 12 }, () => server.get("/more/pid")));
    for (const { status } of more) assert.equal(status, 200);
    const { processes: others } = await told(server, "status");
    assert.deepEqual(
      others.map(({ number, pid }: { number: number; pid: number }) => [number, now.has(pid)]),
      [[2, true]],
    );
    // Nobody else begins to run what the first has unloaded.
    assert.equal((await told(server, "unload", "http_kept")).result, "done");
    const [second] = [...now].filter((pid) => pid !== first);
    process.kill(second as number, "SIGKILL");
    await eventually("another process serves", async () => {
      now = await server.pids();
      return now.size === 2 && !now.has(second as number);
    });
    const asked = await Promise.all(Array.from({ length: 12 }, () => server.get("/kept/pid")));
    assert.deepEqual(new Set(asked.map(({ status }) => status)), new Set([404]));
    server.kill("SIGKILL");
    for (const pid of now) await untilGone(pid, false);
  });

  test("another process takes the place of one that is killed; whoever connects meanwhile is served", async () => {
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
      // What was on its way to the one that was killed is lost with it.
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
 * What a body sent in two pieces comes back as; the second is sent when the first has come back.
 */
function upper(port: number): Promise<{ text: string; trailer: string | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path: "/kept/upper", method: "POST", agent: false }, (answer) => {
      let text = "";
      answer.on("data", (piece) => {
        if (text === "") sent.end(" second");
        text += piece;
      });
      answer.on("end", () => resolve({ text, trailer: answer.trailers["x-after"] })).on("error", reject);
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
