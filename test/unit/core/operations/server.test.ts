import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { AuditFile } from "#core/operations/audit.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { Change, Module } from "#core/types.ts";
import { hostOf, stateOf } from "../module/support.ts";

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-audit-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const linesOf = async (file: string) =>
  (await readFile(file, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Change);

describe("module.server", { timeout: 300_000 }, () => {
  /**
   * Returns a module whose handler makes a change of the server, and responds with its own
   * generation and the record.
   */
  const changing = (act: (module: Module) => Promise<Change>) => {
    let generation = 0;
    return (module: Module) => {
      module.depends("http");
      const own = ++generation;
      const handler = async () => JSON.stringify({ own, change: await act(module) });
      module.provides("http", { route: { "GET /act": handler, GET: () => String(own) } });
    };
  };
  const acted = async (running: { fetch(path: string): Promise<Response> }) =>
    (await (await running.fetch("/self/act")).json()) as { own: number; change: Change };

  test("a handler can reload its own module: it responds, and the next request reaches the new instance", async (t) => {
    const running = await hostOf(t, { http_self: changing(({ server }) => server.reload("http_self")) });
    const { own, change } = await acted(running);
    assert.deepEqual([own, change.what, change.by, change.result], [1, "reload http_self", "module http_self", "done"]);
    assert.equal(await (await running.fetch("/self")).text(), "2");
    const said = running.logged("info").map(({ msg }) => msg);
    assert.ok(said.includes("reload http_self, requested by module http_self: done"), said.join("\n"));
  });

  test("a handler can unload its own module: it responds, and then the module is gone", async (t) => {
    const running = await hostOf(t, { http_self: changing(({ server }) => server.unload("http_self")) });
    assert.equal((await acted(running)).change.result, "done");
    assert.equal((await running.fetch("/self")).status, 404);
    while (stateOf(running, "http_self") !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test("the promise of a reload resolves when the new instance serves, although the old one still finishes requests", async (t) => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    let generation = 0;
    const running = await hostOf(t, {
      http_slow(module) {
        module.depends("http");
        const own = ++generation;
        const handler = async () => {
          arrived.resolve();
          await gate.promise;
          return String(own);
        };
        module.provides("http", { route: { "GET /wait": handler, GET: () => String(own) } });
      },
      http_self: changing(({ server }) => server.reload("http_slow")),
    });
    const waiting = running.fetch("/slow/wait");
    await arrived.promise;
    const { change } = await acted(running);
    assert.deepEqual([change.result, change.steps.at(-1)?.what], ["done", "exchanged"]);
    assert.equal(await (await running.fetch("/slow")).text(), "2");
    gate.resolve();
    assert.equal(await (await waiting).text(), "1");
  });

  for (const step of ["load", "ready", "save"] as const) {
    test(`a request in module.${step} is refused at once, because the server waits for that step`, async (t) => {
      const requested = Promise.withResolvers<Change>();
      const running = await hostOf(t, {
        eager(module) {
          module[step] = async () => requested.resolve(await module.server.reload("other"));
        },
        other: () => undefined,
      });
      if (step === "save") await running.host.reload("eager");
      const { result, error } = await requested.promise;
      assert.equal(result, "refused");
      assert.match(error?.message ?? "", /waits for eager to finish a step of its life cycle/);
      assert.equal(stateOf(running, "eager")?.status, "loaded");
    });
  }

  test("an instance that is being unloaded is refused, and the others are not", async (t) => {
    const requested = Promise.withResolvers<Change>();
    const running = await hostOf(t, {
      leaver(module) {
        module.unload = async () => requested.resolve(await module.server.unload("other"));
      },
      other: () => undefined,
    });
    await running.host.unload("leaver");
    const { result, error } = await requested.promise;
    assert.deepEqual([result, error?.code], ["refused", "CHANGE_REFUSED"]);
    assert.match(error?.message ?? "", /the instance of leaver that requests it is being unloaded/);
    assert.equal(stateOf(running, "other")?.status, "loaded");
  });

  test("a handler can stop the server: it responds first, and the requester is recorded", async (t) => {
    const running = await hostOf(t, { http_self: changing(({ server }) => server.stop({ by: "token ops" })) });
    const { change } = await acted(running);
    assert.deepEqual([change.what, change.by, change.via, change.result], ["stop", "token ops", "http_self", "done"]);
    await running.host.ended;
    assert.equal(running.host.state, "stopped");
  });

  test("each change is announced when it has ended, whoever requested it", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(t, {
      observer: (module) =>
        module.hook("server-changed", ({ what, by, result }: Change) => void seen.push(`${what} by ${by}: ${result}`)),
      broken: () => undefined,
    });
    await running.host.reload("broken");
    await assert.rejects(running.host.unload("nobody"));
    while (seen.length < 2) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(seen, ["reload broken by program: done", "unload nobody by program: refused"]);
  });
});

describe("the audit file", { timeout: 300_000 }, () => {
  test("has a line for each change, is readable only by its owner, and contains no secrets", async (t) => {
    const folder = await folderFor(t);
    let loads = 0;
    const host = await createTestHost({
      config: { data_path: folder, keeper_key: "a-secret-of-some-length" },
      modules: [
        {
          name: "keeper",
          options: { keeper_key: { type: "string", secret: true, describe: "A secret." } },
          load(module) {
            if (++loads > 1) throw new Error(`cannot use ${module.get_option_string("keeper_key")}`);
          },
        },
      ],
    });
    await assert.rejects(host.host.reload("keeper"));
    await host.host.stop({ by: "signal SIGTERM" });
    const file = join(folder, "audit.jsonl");
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    const lines = await linesOf(file);
    assert.deepEqual(
      lines.map(({ what, by, result }) => [what, by, result]),
      [
        ["reload keeper", "program", "failed"],
        ["stop", "signal SIGTERM", "done"],
      ],
    );
    assert.match(lines[0]?.error?.message ?? "", /cannot use \(secret\)/);
    assert.ok((lines[0]?.id ?? "") < (lines[1]?.id ?? ""));
    await host.stop();
  });

  test("prevents no change if it cannot be written: this is logged once, and is a warning of the status", async (t) => {
    const folder = await folderFor(t);
    await mkdir(join(folder, "audit.jsonl"));
    const host = await createTestHost({
      config: { data_path: folder },
      modules: [{ name: "plain", load: () => undefined }],
    });
    t.after(() => host.stop());
    await host.host.reload("plain");
    await host.host.reload("plain");
    while (host.logged("error").length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const [{ msg } = { msg: "" }, ...more] = host.logged("error");
    assert.match(msg, /^Cannot write the audit file, so changes are not recorded: EISDIR/);
    assert.deepEqual(more, []);
    assert.deepEqual(host.host.status().warnings, ["Changes are not recorded: the audit file cannot be written"]);
  });

  test("has a maximum size: a full file becomes the previous one, and no line is cut", async (t) => {
    const folder = await folderFor(t);
    const file = new AuditFile(join(folder, "audit.jsonl"), () => assert.fail("it can be written"), 300);
    for (let at = 0; at < 100; at += 1) {
      file.append({ at });
      // Each line is written before the next one is appended.
      await file.written();
    }
    assert.deepEqual((await readdir(folder)).toSorted(), ["audit.jsonl", "audit.jsonl.1"]);
    const numbers: number[] = [];
    for (const name of ["audit.jsonl.1", "audit.jsonl"]) {
      assert.ok((await stat(join(folder, name))).size <= 300);
      for (const line of await linesOf(join(folder, name))) numbers.push(Number(line.at));
    }
    assert.equal(numbers.at(-1), 99);
    assert.deepEqual(
      numbers,
      Array.from(numbers, (_, at) => 100 - numbers.length + at),
    );
  });

  test("is not created by a host that serves nothing", async (t) => {
    const folder = await folderFor(t);
    const host = await createTestHost({
      listen: false,
      config: { data_path: folder },
      modules: [{ name: "plain", load: () => undefined }],
    });
    await host.host.reload("plain");
    await host.host.stop();
    assert.deepEqual(await readdir(folder), []);
    await host.stop();
  });
});
