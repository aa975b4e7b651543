/**
 * Isolated modules whose code, or a library of theirs, uses the ports and streams of the thread.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { logged, pluginHost } from "../module/support.ts";

const source = `
import { MessageChannel, Worker, parentPort, workerData } from "node:worker_threads";
export const isolated = true;
export const depends = ["http"];
const heard = [];
parentPort.on("message", (message) => heard.push(message));
const cyclic = {};
cyclic.self = cyclic;
const values = ["ready", "", 1, NaN, null, undefined, 10n, true, [], {}, cyclic, new Map(), new Error("e"), new SharedArrayBuffer(8), new Float64Array(2)];
const forged = [
  { call: "log", id: undefined, values: [["info", "a forged line"]] },
  { call: "fault", id: 1, values: ["x", null] },
  { call: "leave", id: 2, values: [] },
  { answer: 1, value: "forged" },
  { answer: 2, error: null },
  { call: "provide", id: undefined, values: [{ host: "*", keys: ["GET /forged"], place: {} }] },
];
export default function (module) {
  module.provides("http", { route: {
    GET: () => "fine",
    "GET /post": () => {
      for (const value of [...values, ...forged]) parentPort.postMessage(value);
      const { port1, port2 } = new MessageChannel();
      parentPort.postMessage({ port: port2 }, [port2]);
      port1.close();
      return "posted";
    },
    "GET /heard": () => JSON.stringify([heard, Object.keys(workerData)]),
    "GET /flood": () => { for (let count = 0; count < 100000; count += 1) parentPort.postMessage({ count }); return "posted"; },
    "GET /print": () => { for (let count = 0; count < 2000; count += 1) process.stderr.write(""); return "printed"; },
    "GET /nested": () => new Promise((resolve) => {
      const nested = new Worker("require('node:worker_threads').parentPort.postMessage('from below')", { eval: true });
      nested.once("message", (message) => resolve(message));
    }),
    "GET /long": () => { module.log.info("x".repeat(5_000_000)); return ""; },
    "GET /close": () => { parentPort.unref(); parentPort.removeAllListeners(); parentPort.close(); return "closed"; },
  } });
}
`;

test("messages that an isolated module posts to its parent thread only cause one warning, and it sees no messages of the host", {
  timeout: 120_000,
}, async (t) => {
  const running = await pluginHost(t, { "mod_evil.js": source }, { isolated_timeout: 60 });
  const get = async (path: string) => {
    const { status, body } = await running.inject(path);
    assert.equal(status, 200, `${path}: ${body}`);
    return body;
  };
  assert.equal(await get("/evil/post"), "posted");
  assert.equal(await get("/evil/heard"), '[[],["source","loadTimeout"]]');
  assert.equal(await get("/evil/post"), "posted");
  assert.equal(await get("/evil/flood"), "posted");
  const warnings = () =>
    logged(running, "warn").filter(({ msg, module }) => module === "evil" && /parentPort/.test(msg));
  await eventually("a warning is logged", () => warnings().length > 0);
  assert.equal((await running.inject("/evil/forged")).status, 404);
  assert.equal(await get("/evil/nested"), "from below");
  assert.equal(await get("/evil/print"), "printed");
  assert.equal(await get("/evil/long"), "");
  const long = () => logged(running, "info").find(({ msg }) => msg.startsWith("xxx"))?.msg ?? "";
  await eventually("the long line is logged", () => long() !== "");
  assert.match(long(), /^x{65536}\.\.\. \(4934464 more characters are left out\)$/);
  assert.equal(await get("/evil/close"), "closed");
  assert.equal(await get("/evil"), "fine");
  assert.equal(warnings().length, 1);
  await running.host.reload("evil");
  assert.equal(await get("/evil"), "fine");
  assert.equal(
    logged(running, "info").some(({ msg }) => /forged/.test(msg)),
    false,
  );
});

/** Raw responses that a module writes itself, bypassing the host's code in its thread. */
const raw = `
export const isolated = true;
export const depends = ["http"];
const of = (status, lines, body = "") => "HTTP/1.1 " + status + "\\r\\n" + lines.map((line) => line + "\\r\\n").join("") + "\\r\\n" + body;
const refused = (text) => of("500 X", ["x-modhost-refused: " + text, "Content-Length: 0"]);
const answers = [
  ...["000 X", "001 X", "099 X", "999 X", "1 X", "-200 X", "20000 X", "abc X", "200", "101 Y", "100 Z", "204 N"].map((status) => of(status, ["Content-Length: 2"], "ok")),
  ...["-1", "NaN", "1e3", "0x10", "99999999999999999999", "9007199254740993", "1, 2", ""].map((length) => of("200 OK", ["Content-Length: " + length], "ok")),
  of("200 OK", ["Content-Length: 2", "Content-Length: 3"], "ok!"),
  of("200 OK", ["Transfer-Encoding: chunked"], "zz\\r\\nok\\r\\n0\\r\\n\\r\\n"),
  of("200 OK", ["Transfer-Encoding: chunked", "Trailer: content-length, x y, :"], "2\\r\\nok\\r\\n0\\r\\nContent-Length: 7\\r\\n\\r\\n"),
  of("200 OK", ["Transfer-Encoding: gzip, chunked, chunked"], "ok"),
  ...["Bad Name: 1", "x: a\\u0000b", "x: \\u00e9\\u00ff", "x\\u00e9: 1", ": 1", "x", " folded: 1", "__proto__: 1", "constructor: 1", "set-cookie: \\u0001"].map((line) => of("200 OK", [line, "Content-Length: 2"], "ok")),
  ...["garbage", "null", "1", "[]", '{"message":{}}', '{"error":null}', '{"error":7}', '{"error":{"name":"ModhostError","code":"toString"}}', '{"message":"m","error":{"message":{},"stack":[]}}', '{"__proto__":1}'].map(refused),
  of("200 OK", ["x-modhost-passed: 1", "Content-Length: 2"], "ok"),
  of("103 Early Hints", []).repeat(500) + of("200 OK", ["Content-Length: 2"], "ok"),
  of("200 OK", ["Content-Length: 2", ...Array.from({ length: 3000 }, (_, at) => "x" + at + ": 1")], "ok"),
  "", "\\r\\n\\r\\n", "garbage", "HTTP/9.9 200 OK\\r\\n\\r\\n", of("200 OK", ["Content-Length: 2"], "ok") + of("200 OK", ["Content-Length: 5"], "again"),
];
export default (module) => module.provides("http", { route: {
  GET: () => "fine",
  "GET /count": () => String(answers.length),
  "GET /raw": ({ request }) => { request.raw.socket.end(answers[Number(request.url.query)], "latin1"); return new Promise(() => undefined); },
} });
`;

for (const { mode, title, skip } of runModes) {
  test(`raw responses that ${title} writes affect only the request that they belong to`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const good =
      'export default (module) => { module.depends("http"); module.provides("http", { route: { GET: () => "good" } }); };';
    const running = await pluginHost(
      t,
      { "mod_raw.js": raw, "mod_good.js": good },
      { isolated_timeout: 60, unload_grace: 0.1, ...runningAs(mode, { "mod_raw.js": raw }) },
    );
    const count = Number((await running.inject("/raw/count")).body);
    assert.ok(count > 40);
    for (let at = 0; at < count; at += 1) {
      const response = await running.inject(`/raw/raw?${at}`).catch((error: unknown) => error);
      const { status } = response as { status?: number };
      assert.ok(
        response instanceof Error || (status !== undefined && status >= 200 && status < 1000),
        `${at}: ${status}`,
      );
    }
    assert.equal((await running.inject("/good")).body, "good");
    assert.equal((await running.inject("/raw")).body, "fine");
    assert.deepEqual(
      logged(running, "warn").filter(({ msg }) => /(?:worker|sandbox) ended|did not respond/.test(msg)),
      [],
    );
  });
}
