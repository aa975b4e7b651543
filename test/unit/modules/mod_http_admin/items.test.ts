import assert from "node:assert/strict";
import { request } from "node:http";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { defineOperation, HttpError } from "#core/index.ts";
import type { AdminItem, AdminTopic, Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { type AdminHost, adminHost, callAt } from "./support.ts";

type Plain = (module: Module) => unknown;

/** Returns a module that adds an item under a name. */
const adding = (name: string, item: AdminItem | (() => AdminItem)) => ({
  name,
  global: true,
  load: ((module) => module.provides("admin", typeof item === "function" ? item() : item)) satisfies Plain,
});

const look = (name: string, path = "/notes") =>
  defineOperation({
    name,
    method: "GET",
    path,
    scope: "read",
    help: "Looks",
    response: { type: "string" },
    run: () => name,
  });

async function withModules(t: TestContext, modules: readonly ReturnType<typeof adding>[], allow_failed = false) {
  return adminHost(t, { modules, allow_failed });
}

const noteOf = (running: AdminHost, wanted: string) =>
  running.host.modules().find(({ name }) => name === wanted)?.note ?? "";

describe("an operation that a module adds", () => {
  const input = {
    id: { type: "string", required: true, describe: "Which" },
    size: { type: "number", describe: "How large" },
  } as const;
  const notes: AdminItem = {
    operations: [
      defineOperation({
        name: "notes_change",
        method: "POST",
        path: "/notes/{id}",
        scope: "admin",
        help: "Changes a note",
        input,
        response: "Note",
        run: ({ input: { id, size = 0 }, by }) => ({ id, size: size + 1, by }),
      }),
      defineOperation({
        name: "notes_upload",
        method: "POST",
        path: "/notes/{id}/text",
        scope: "admin",
        help: "Takes a note's text",
        input,
        takes: "stream",
        response: { type: "object" },
        run: async ({ input: { id, size }, event }) => {
          let bytes = 0;
          for await (const piece of event.request.body_stream) bytes += piece.length;
          return { id, size, bytes };
        },
      }),
      defineOperation({
        name: "notes_missing",
        method: "GET",
        path: "/notes/{id}",
        scope: "read",
        help: "Shows a note",
        input: { id: input.id },
        response: "Note",
        run: ({ input: { id } }) => {
          throw id === "secret" ? new Error("a password") : new HttpError(404, `There is no note ${id}`);
        },
      }),
      defineOperation({
        name: "notes_file",
        method: "GET",
        path: "/notes/{id}/file",
        scope: "read",
        help: "A note as a file",
        input: { id: input.id },
        response: { type: "string" },
        isRaw: true,
        run: () => ({ status_code: 206, headers: { content_type: "text/plain" }, body: "ab" }),
      }),
    ],
    shapes: { Note: { type: "object" } },
  };

  test("gets its checked fields and the caller, reads a stream of any size, and may write its own response", async (t) => {
    const running = await withModules(t, [adding("notes", notes)]);
    const changed = await running.call("POST", "/notes/a%20b", { size: 2 });
    assert.deepEqual(changed, { status: 200, value: { id: "a b", size: 3, by: "admin socket" } });
    assert.equal((await running.call("POST", "/notes/a", { size: "large" })).status, 400);
    const bytes = 300_000;
    const uploaded = await running.call("POST", "/notes/a/text?size=7", "x".repeat(bytes - 2));
    assert.deepEqual(uploaded.value, { id: "a", size: 7, bytes });
    const { promise, resolve } = Promise.withResolvers<string>();
    request({ socketPath: running.socket, path: "/admin/api/notes/a/file", agent: false }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve(`${response.statusCode} ${response.headers["content-type"]} ${text}`);
    }).end();
    assert.equal(await promise, "206 text/plain ab");
  });

  test("reports errors that are meant for the caller, but no others", async (t) => {
    const running = await withModules(t, [adding("notes", notes)]);
    const missing = await running.call("GET", "/notes/x");
    assert.deepEqual(missing, { status: 404, value: { error: { code: "not_found", message: "There is no note x" } } });
    const failed = await running.call("GET", "/notes/secret");
    assert.equal(failed.status, 500);
    assert.doesNotMatch(JSON.stringify(failed.value), /password/);
  });

  test("is in the OpenAPI document with its schemas, and disappears with its module", async (t) => {
    const running = await withModules(t, [adding("notes", notes)]);
    type Document = {
      paths: Record<
        string,
        { post?: { requestBody: { content: object }; parameters: { name: string; in: string }[] } }
      >;
      components: { schemas: object };
    };
    const document = async () => (await running.call<Document>("GET", "/openapi.json")).value;
    const { paths, components } = await document();
    const upload = paths["/admin/api/notes/{id}/text"]?.post;
    assert.deepEqual(Object.keys(upload?.requestBody.content ?? {}), ["application/octet-stream"]);
    assert.deepEqual(
      upload?.parameters.map((field) => `${field.in} ${field.name}`),
      ["path id", "query size"],
    );
    assert.ok("Note" in components.schemas);
    await running.unload("notes");
    assert.equal((await running.call("GET", "/notes/x")).status, 404);
    assert.ok(!Object.keys((await document()).paths).some((path) => path.includes("notes")));
  });

  test("ends before its module is unloaded", async (t) => {
    const called = Promise.withResolvers<void>();
    const open = Promise.withResolvers<string>();
    const slow = defineOperation({
      name: "slow",
      method: "GET",
      path: "/slow",
      scope: "read",
      help: "Waits",
      response: { type: "string" },
      run: () => {
        called.resolve();
        return open.promise;
      },
    });
    const running = await withModules(t, [adding("notes", { operations: [slow] })]);
    const response = callAt(running.socket, "GET", "/slow");
    await called.promise;
    let isGone = false;
    const unloaded = running.unload("notes").then(() => (isGone = true));
    await sleep(20);
    assert.equal(isGone, false);
    open.resolve("over");
    assert.equal((await response).value, "over");
    await unloaded;
  });
});

describe("an invalid item is refused with its name, and its module is not loaded:", () => {
  const refused: readonly (readonly [string, AdminItem, RegExp])[] = [
    [
      "the name of an operation of the server",
      { operations: [look("status")] },
      /operation status already belongs to the module http_admin/,
    ],
    [
      "the path of an operation of the server",
      { operations: [look("notes_x", "/status")] },
      /GET \/status already belongs to the module/,
    ],
    [
      "the path of an operation of the server with another field name",
      {
        operations: [
          { ...look("x", "/tokens/{id}/revoke"), method: "POST", input: { id: { type: "string", describe: "x" } } },
        ],
      },
      /POST \/tokens\/\{id\}\/revoke already belongs to the module http_admin/,
    ],
    [
      "a topic of the server",
      { topics: { log: () => () => undefined } },
      /topic log already belongs to the module http_admin/,
    ],
    [
      "a field of the path that is not declared",
      { operations: [look("x", "/x/{id}")] },
      /x: \{id\} of the path is not declared in input/,
    ],
    [
      "an operation without a function",
      { operations: [{ ...look("x"), run: undefined as never }] },
      /x: run must be a function/,
    ],
  ];
  for (const [what, item, message] of refused) {
    test(what, async (t) => {
      const running = await withModules(t, [adding("notes", item)], true);
      assert.match(noteOf(running, "notes"), message);
    });
  }

  test("an operation of another module", async (t) => {
    const modules = [
      adding("one", { operations: [look("same")] }),
      adding("two", { operations: [look("same", "/two")] }),
    ];
    const running = await withModules(t, modules, true);
    assert.match(noteOf(running, "two"), /operation same already belongs to the module one/);
    assert.equal((await running.call("GET", "/notes")).value, "same");
  });
});

test("a topic that a module adds is followed while somebody listens, by the current instance", async (t) => {
  const log: string[] = [];
  let instances = 0;
  const item = (): AdminItem => {
    const own = String((instances += 1));
    const topic: AdminTopic = (emit) => {
      log.push(`begin ${own}`);
      emit(own);
      return () => log.push(`end ${own}`);
    };
    return { topics: { notes_news: topic } };
  };
  const running = await withModules(t, [adding("notes", item)]);
  assert.deepEqual(log, []);
  const { promise, resolve } = Promise.withResolvers<{ text: () => string; close: () => void }>();
  const path = "/admin/api/events?topics=notes_news";
  request({ socketPath: running.socket, path, agent: false }, (response) => {
    let text = "";
    response.on("error", () => undefined).on("data", (piece: Buffer) => (text += piece.toString()));
    resolve({ text: () => text, close: () => response.destroy() });
  }).end();
  const { text, close } = await promise;
  const until = (pattern: RegExp) => eventually(`${pattern} is told`, () => pattern.test(text()));
  await until(/event: notes_news\ndata: "1"/);
  await running.reload("notes");
  await until(/event: notes_news\ndata: "2"/);
  close();
  await eventually("the last source has ended", () => log.length === 4);
  assert.deepEqual(log, ["begin 1", "end 1", "begin 2", "end 2"]);
  const unknown = await running.call<{ error: { message: string } }>("GET", "/events?topics=nothing");
  assert.match(unknown.value.error.message, /topics are log, .*notes_news/);
});
