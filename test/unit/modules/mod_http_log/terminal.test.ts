import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { HttpFinishedEvent } from "#core/types.ts";
import { TerminalLines, type TerminalSettings, terminalLine } from "#modules/mod_http_log/terminal.ts";

function request(path: string, more: Partial<HttpFinishedEvent> = {}): HttpFinishedEvent {
  const event = { request: { method: "GET", url: { raw_path: path } }, status: 200, bytes: 1234, duration: 3.111 };
  return { ...event, complete: true, app: "files", ...more } as unknown as HttpFinishedEvent;
}

const terminal = (columns?: number): TerminalSettings => ({ isColored: true, width: () => columns });
const shown = ({ request }: HttpFinishedEvent) => ({ path: request.url.raw_path, query: undefined, slow: false });
const lineOf = (event: HttpFinishedEvent, columns?: number) => terminalLine(event, shown(event), terminal(columns));

describe("a request on a terminal", () => {
  test("is a line of method, path, status, time, size and app", () => {
    const line = stripVTControlCharacters(lineOf(request("/a"), 100));
    assert.match(line, /^\d\d:\d\d:\d\d GET {3}\/a {38} {2}200 {4}3\.1 ms {3}1\.2 kB {2}files\n$/);
  });

  test("has the colour of its status", () => {
    for (const [status, code] of [
      [200, 32],
      [304, 36],
      [404, 33],
      [500, 31],
    ] as const) {
      assert.ok(lineOf(request("/", { status })).includes(`\u001b[${code}m${status}\u001b[0m`), String(status));
    }
    const event = request("/", { status: 0, complete: false });
    assert.match(stripVTControlCharacters(lineOf(event)), / --- .* client left\n$/);
    assert.equal(terminalLine(event, shown(event), { ...terminal(), isColored: false }).includes("\u001b"), false);
  });

  test("cannot contain control characters that clients send", () => {
    const event = request("/a\u001b[2J\n\u009b", { app: "x\u001b]0;y\u0007" });
    const line = terminalLine(event, { ...shown(event), query: "b=\u0007", slow: true }, terminal(200));
    const plain = stripVTControlCharacters(line);
    assert.match(plain, / \/a\\x1b\[2J\\x0a\\x9b\?b=\\x07 .* 200 .* x\\x1b\]0;y\\x07\n$/);
    assert.equal(line.split("\n").length, 2);
  });

  test("is never wider than the terminal, however narrow it is, and keeps its status", () => {
    const event = request(`/${"long/".repeat(60)}`, { complete: false, app: "an_app_with_a_long_name" });
    for (const columns of [200, 120, 100, 80, 60, 45]) {
      const line = stripVTControlCharacters(lineOf(event, columns)).trimEnd();
      assert.ok(line.length <= columns, `${line.length} of ${columns}: ${line}`);
      assert.match(line, /… +200/);
    }
  });
});

describe("requests on a terminal", () => {
  function lines(t: TestContext) {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const written: string[] = [];
    const all = new TerminalLines({ isColored: false, width: () => 100 }, (text) => written.push(text));
    let made = 0;
    const add = (count: number, more: Partial<HttpFinishedEvent> = {}) => {
      for (let at = 0; at < count; at++) {
        all.add(request("/", more), (event) => {
          made += 1;
          return shown(event);
        });
      }
    };
    return { all, add, written, made: () => made, second: () => t.mock.timers.tick(1000) };
  }

  test("each have a line while people can follow", (t) => {
    const { add, written, second } = lines(t);
    for (let seconds = 0; seconds < 3; seconds++) {
      add(20);
      second();
    }
    assert.equal(written.length, 60);
  });

  test("are summarized each second in a burst, and nothing is formatted for requests that are not shown", (t) => {
    const { add, written, made, second } = lines(t);
    add(9_000);
    add(1_000, { status: 404, bytes: 0 });
    second();
    assert.equal(made(), 40);
    assert.match(written.at(-1) ?? "", /… 9,960 more: 8,960 2xx, 1,000 4xx, 11\.1 MB\n$/);
    add(10_000);
    second();
    assert.equal(made(), 45, "while it goes on, fewer are shown");
    second();
    add(30);
    assert.equal(made(), 75, "and all again when it is over");
  });

  test("that failed are shown in addition, up to a number", (t) => {
    const { add, made } = lines(t);
    add(100);
    add(100, { status: 500 });
    assert.equal(made(), 60);
  });

  test("are summarized at the end", (t) => {
    const { all, add, written } = lines(t);
    add(41);
    all.flush();
    assert.match(written.at(-1) ?? "", /… 1 more: 1 2xx, 1\.2 kB\n$/);
  });
});
