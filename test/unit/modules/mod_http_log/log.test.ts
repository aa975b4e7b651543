import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { HttpEvent } from "#core/types.ts";
import { shownQuery, shownReferer, shownText } from "#core/util/masked_text.ts";
import log from "#modules/mod_http_log/index.ts";
import { Harness } from "#test/unit/modules/harness.ts";

describe("a query string in the log", () => {
  const redacted = (query: string) => shownQuery(query, "redacted");

  test("has the values of apparent secrets hidden, and no others", () => {
    for (const name of [
      "token",
      "access_token",
      "bearer",
      "accessToken",
      "id-token",
      "key",
      "api_key",
      "apikey",
      "apiKey",
      "X-Amz-Signature",
      "sig",
      "password",
      "passwd",
      "pwd",
      "client_secret",
      "auth",
      "Authorization",
      "code",
      "session",
      "PHPSESSID_session",
      "sid",
      "user[password]",
      "to%6ben",
      "otp",
      "jwt",
    ]) {
      assert.equal(redacted(`a=1&${name}=x%20y=z&b=2`), `a=1&${name}=***&b=2`, name);
    }
    for (const name of [
      "a",
      "page",
      "author",
      "codec",
      "keyboard",
      "design",
      "monkey",
      "zipcode",
      "pinned",
      "%",
      "state",
    ]) {
      assert.equal(redacted(`${name}=1`), `${name}=1`, name);
    }
  });

  test("has them hidden whatever separates the pairs, and within values that are URLs", () => {
    assert.equal(redacted("a=b;token=abc;c=d"), "a=b;token=***;c=d");
    assert.equal(redacted("next=/back?token=abc&b=1"), "next=***&b=1");
    assert.equal(redacted("next=%2Fback%3Fb%3D1%26token%3Dabc&b=1"), "next=***&b=1");
    assert.equal(redacted("next=%252Fback%253Ftoken%253Dabc"), "next=***");
    assert.equal(redacted("next=%2Fback%3Fpage%3D1;b=%zz=1"), "next=%2Fback%3Fpage%3D1;b=%zz=1");
  });

  test("has them hidden in other texts, too, after the name of a secret", () => {
    assert.equal(shownText("/a;token=abc/b;v=1", "redacted"), "/a;token=***;v=1");
    const secret = `mht_abcdefghij_${"x".repeat(32)}`;
    for (const written of [secret, secret.replaceAll("_", "%5F"), secret.replaceAll("_", "%255f")]) {
      assert.equal(shownText(`/a/${written}/b;v=${written}`, "redacted"), "/a/mht_.../b;v=mht_...");
      assert.equal(redacted(`x=${written}&b=2`), "x=mht_...&b=2");
    }
    assert.equal(shownText("tool/1.0 (api_key=abc; os=linux)", "redacted"), "tool/1.0 (api_key=***; os=linux)");
    assert.equal(shownText("sid=abc; theme=dark, auth=x", "redacted"), "sid=***; theme=dark, auth=***");
    assert.equal(shownText("token=abc", "full"), "token=abc");
    assert.equal(shownReferer("https://x/a;jsessionid=1?b=1", "redacted"), "https://x/a;jsessionid=***?b=1");
  });

  test("may contain text that is not a pair", () => {
    for (const query of ["token", "=x", "&&", "a", "token="]) {
      assert.equal(redacted(query), query === "token=" ? "token=***" : query);
    }
  });

  test("is shown as sent, or left out", () => {
    assert.equal(shownQuery("token=x", "full"), "token=x");
    assert.equal(shownQuery("token=x", "none"), undefined);
    assert.equal(shownQuery(undefined, "full"), undefined);
  });

  test("is treated in the same way in a Referer, whose fragment is removed", () => {
    assert.equal(shownReferer("https://x/a?b=1&code=2#c", "redacted"), "https://x/a?b=1&code=***");
    assert.equal(shownReferer("https://x/a?b=1", "none"), "https://x/a");
    assert.equal(shownReferer("https://x/a#token=1", "full"), "https://x/a");
    assert.equal(shownReferer("https://x/a", "redacted"), "https://x/a");
    assert.equal(shownReferer("https://me:pa:s@s@x/a?b=1", "redacted"), "https://***@x/a?b=1");
    assert.equal(shownReferer("https://me:pass@x", "none"), "https://***@x");
    assert.equal(shownText("bot (+https://secret@x/a, b@c)", "redacted"), "bot (+https://***@x/a, b@c)");
    assert.equal(shownReferer(undefined, "full"), undefined);
  });
});

describe("the request log", () => {
  let folder: string;
  let file: string;
  let server: Harness;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-log-"));
  });
  after(() => rm(folder, { recursive: true }));

  beforeEach(async () => {
    file = join(folder, `${Math.random()}`, "requests.log");
    server = await new Harness().start();
    for (const [name, path] of [
      ["http_app", "/app"],
      ["http_api", "/api/v0"],
      ["http_moved", "/api/v0/moved"],
    ] as const) {
      server.module(name).provides("http", {
        default_path: path,
        route: {
          "GET /*": () => "hello",
          "GET /fails": () => 500,
          "GET /never": (event: HttpEvent) => {
            // This notices that the client leaves.
            event.response.on_destroy = () => {};
            server.events.emit("waiting", event);
            return true;
          },
        },
      });
    }
  });
  afterEach(() => server.stop());

  const start = (options: Record<string, unknown> = {}) =>
    log(server.module("http_log", { http_log_file: file, ...options }));

  async function lines(): Promise<Record<string, unknown>[]> {
    await server.release();
    return (await readFile(file, "utf8"))
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  async function ask(path: string, headers: Record<string, string> = {}) {
    const finished = once(server.events, "finished");
    await server.fetch(path, headers);
    await finished;
  }

  test("has a line with these fields for each request", async () => {
    start();
    await ask("/app/a%20b?x=1&token=abc", { "user-agent": "test/1", referer: "http://x/?key=1", host: "example" });
    const [line, ...more] = await lines();
    const { id, time, ms, ...rest } = line ?? {};
    assert.deepEqual(more, []);
    assert.match(String(id), /^\w+-\w+$/);
    assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000);
    assert.ok(typeof ms === "number" && ms > 0 && ms < 60_000);
    assert.deepEqual(rest, {
      level: "info",
      ip: "127.0.0.1",
      method: "GET",
      host: "example",
      path: "/app/a%20b",
      query: "x=1&token=***",
      status: 200,
      bytes: 5,
      app: "app",
      agent: "test/1",
      referer: "http://x/?key=***",
    });
  });

  test("leaves out fields without a value", async () => {
    start();
    await ask("/nowhere");
    const [line = {}] = await lines();
    assert.equal(line.status, 404);
    for (const name of ["query", "app", "agent", "referer", "complete"]) assert.ok(!(name in line), name);
  });

  test("never contains a query of the RPC, wherever it occurs", async () => {
    start({ http_log_query: "full" });
    for (const path of ["/api/v0/x?arg=secret", "/api/v0/moved/x?arg=secret", "/app/x?arg=seen"]) await ask(path);
    const queries = (await lines()).map((line) => line.query);
    assert.deepEqual(queries, [undefined, undefined, "arg=seen"]);
  });

  test("says when the client left before the response was complete", async () => {
    start();
    const finished = once(server.events, "finished");
    const waiting = once(server.events, "waiting");
    const socket = await server.raw("GET /app/never HTTP/1.1\r\nHost: x\r\n\r\n");
    await waiting;
    socket.destroy();
    await finished;
    const [line = {}] = await lines();
    assert.deepEqual([line.status, line.complete], [0, false]);
  });

  test("warns of slow requests only if http_log_slow is set", async () => {
    start({ http_log_slow: 0 });
    await ask("/app/x");
    assert.equal((await lines())[0]?.level, "warn");
  });

  test("is off with http_log", async () => {
    start({ http_log: false });
    await ask("/app/x");
    await server.release();
    await assert.rejects(stat(file), { code: "ENOENT" });
  });

  test("is written in batches, and waiting lines are flushed at the unload", async () => {
    start();
    await ask("/app/x");
    assert.equal((await stat(file)).size, 0);
    assert.equal((await lines()).length, 1);
  });

  test("fails the load if its file cannot be opened, and names the option", async () => {
    await writeFile(join(folder, "plain"), "");
    file = join(folder, "plain", "log");
    assert.throws(start, /option http_log_file cannot be opened: .*plain/);
  });

  test("loses nothing when the process ends", () => {
    const script = fileURLToPath(new URL("exit.ts", import.meta.url));
    const { stdout, stderr, status } = spawnSync(process.execPath, ["--conditions=source", script], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    const logged = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).path);
    assert.deepEqual(
      logged,
      Array.from({ length: 200 }, (_, at) => `/${at}`),
    );
  });
});
