import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, type TestContext, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { Output } from "#core/cli/output.ts";
import { program } from "#core/cli/program.ts";
import type { ModuleState, ServerStatus } from "#core/types.ts";
import { agoText, statusLines } from "#modules/mod_http_admin/cli/status/text.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { adminHost } from "./support.ts";

const module = (name: string, status: ModuleState["status"], note?: string) =>
  ({ name, host: "*", status, run: "trusted", note, depends: [], holds: {}, file: undefined }) as ModuleState;
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000 + 3_600_000).toISOString();

/** Created when it is used, because the texts depend on the time since then. */
const newStatus = (): ServerStatus => ({
  version: "1.2.3",
  pid: 7,
  started: new Date(Date.now() - 90_000).toISOString(),
  phase: "running",
  config: undefined,
  data_path: "/srv/data",
  addresses: [{ service: "http", scheme: "http", address: "::1", port: 80 }],
  modules: [module("http", "loaded"), module("notes", "failed", "no luck\u001b[2J"), module("shop", "quarantined")],
  certificates: [
    { name: "www.example.org", source: "acme", expires: inDays(3), fingerprint: "" },
    { name: "old.example.org", source: "file", expires: inDays(-2), fingerprint: "" },
  ],
  connections: 12,
  requests: Array.from({ length: 12 }, (_, at) => `GET /${at} (3 s)`),
  warnings: ["The module notes is not loaded: no luck"],
});

describe("the status for people", () => {
  const plain = { paint: (_style: string, text: string) => text, width: undefined };

  test("contains addresses, modules with their state, connections, requests, certificates and warnings", () => {
    const text = statusLines(newStatus(), plain).join("\n");
    for (const wanted of [
      /^version +modhost 1\.2\.3, process 7$/m,
      /^state +running since \d{4}-\d\d-\d\d .* \(1 min\)$/m,
      /^ports +http on \[::1\]:80$/m,
      /^modules +1 loaded, 1 failed, 1 quarantined$/m,
      /^connections +12$/m,
      /^requests +12 in progress$/m,
      /^ {2}notes +failed +no luck\\x1b\[2J$/m,
      /^ {2}www\.example\.org +acme +\d.* 3 days left$/m,
      /^ {2}old\.example\.org +file +\d.* expired$/m,
      /^ {2}and 2 more$/m,
      /^warning {2}The module notes is not loaded: no luck$/m,
    ]) {
      assert.match(text, wanted);
    }
  });

  test("contains each layer of a sandbox, whether it is on, and how to get it", () => {
    const sandbox = [
      { name: "landlock", is_active: true, text: "Files are refused." },
      { name: "user", is_active: false, text: "It runs as the user of the server.", remedy: "Start it as root." },
    ];
    const modules = [module("http", "loaded"), { ...module("shop", "loaded"), sandbox }];
    const text = statusLines({ ...newStatus(), modules }, plain).join("\n");
    assert.match(
      text,
      /^ {2}shop +landlock +on +Files are refused\.\n +user +off +It runs as the user of the server\.\n +→ Start it as root\.$/m,
    );
    assert.doesNotMatch(statusLines(newStatus(), plain).join("\n"), /SANDBOX/);
  });

  test("contains whether a process waits for a sandboxed module", () => {
    const module = { host: "*", status: "loaded", run: "sandboxed", file: undefined, note: undefined } as const;
    const more = { depends: [], holds: {} };
    const modules = [
      { ...module, ...more, name: "shop", has_spare: true },
      { ...module, ...more, name: "mail", has_spare: false },
      { ...module, ...more, name: "feed" },
    ];
    const text = statusLines({ ...newStatus(), modules }, plain).join("\n");
    assert.match(text, /shop +loaded +sandboxed, spare ready\n/);
    assert.match(text, /mail +loaded +sandboxed, no spare yet\n/);
    assert.match(text, /feed +loaded +sandboxed *\n/);
  });

  test("contains the load and the rate of requests if they are known", () => {
    const metrics = { cpu: 0.12, event_loop: 0.034, rss: 120e6, heap: 40e6, active: 2, requests: 1250.4, errors: 3 };
    const text = statusLines(newStatus(), plain, metrics).join("\n");
    assert.match(text, /^requests +12 in progress, 1250\/s, 3 failed$/m);
    assert.match(text, /^load +12 % of a core, event loop 3 % busy, memory 120 MB \(heap 40\.0 MB\)$/m);
  });

  test("is never wider than the terminal", () => {
    const output = { ...plain, width: 40 };
    for (const line of statusLines(newStatus(), output)) assert.ok(line.length <= 40, line);
  });

  test("contains times in the way that people write them", () => {
    const at = "2026-01-01T00:00:00Z";
    const after = (seconds: number) => agoText(at, Date.parse(at) + seconds * 1000);
    assert.deepEqual([5, 200, 18_120, 1_000_000].map(after), ["5 s", "3 min", "5 h 2 min", "11 days 13 h"]);
  });
});

describe("status --watch", () => {
  function terminal() {
    const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 40 });
    const modes: boolean[] = [];
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (is: boolean) => modes.push(is) });
    let text = "";
    stdout.on("data", (piece: Buffer) => (text += piece));
    const shows = async (wanted: RegExp) => {
      while (!wanted.test(stripVTControlCharacters(text))) await once(stdout, "data");
    };
    return { stdout, stdin, modes, shows, text: () => text, forget: () => (text = "") };
  }

  async function watching(t: TestContext) {
    const cwd = await folderOf(t, { "modhost.config.json": "{}" });
    const socket = join(cwd, "s");
    const start = () => adminHost(t, { config: { admin_socket: socket } });
    const server = await start();
    const screen = terminal();
    const { stdin, stdout } = screen;
    const streams = { stdin, stdout, stderr: new PassThrough() } as unknown as Parameters<typeof program>[1];
    const ended = program(["status", "--watch", "--socket", socket], { ...streams, cwd, env: {} });
    return { server, start, screen, ended };
  }

  test("draws again when the size changes, and q restores the terminal", async (t) => {
    const { screen, ended } = await watching(t);
    const { stdout, stdin, modes, shows, text, forget } = screen;
    await shows(/q ends[\s\S]*http_admin +loaded/);
    forget();
    Object.assign(stdout, { columns: 20, rows: 3 });
    stdout.emit("resize");
    const lines = stripVTControlCharacters(text()).split("\r\n");
    assert.equal(lines.length, 3);
    assert.ok(lines.every((line) => line.length <= 20));
    stdin.write("q");
    assert.equal(await ended, 0);
    assert.ok(text().endsWith("\u001b[?25h\u001b[?1049l"));
    assert.deepEqual(modes, [true, false]);
    assert.equal(stdout.listenerCount("resize"), 0);
  });

  test("says that the server has stopped, and shows the next one", async (t) => {
    const { server, start, screen, ended } = await watching(t);
    await screen.shows(/http_admin +loaded/);
    await server.stop();
    await screen.shows(/No server has responded since \d\d:\d\d:\d\d/);
    await start();
    await screen.shows(/The server was restarted: process \d+ has ended, process \d+ serves/);
    screen.stdin.write("\u0003");
    assert.equal(await ended, 0);
  });
});

test("the width of an output is that of its terminal", () => {
  assert.equal(new Output({ columns: 90 } as NodeJS.WriteStream).width, 90);
  assert.equal(new Output({} as NodeJS.WriteStream).width, undefined);
});
