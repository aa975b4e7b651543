import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { exampleFile } from "./support.ts";

const start = (config: Record<string, unknown> = {}) =>
  createTestHost({ modules: [exampleFile("todo")], config: { modules_enabled: ["http_errors"], ...config } });

const send = ({ fetch }: TestHost, method: string, path: string, value?: unknown) =>
  fetch(path, {
    method,
    headers: { "content-type": "application/json", accept: "application/json" },
    ...(value === undefined ? {} : { body: typeof value === "string" ? value : JSON.stringify(value) }),
  });

const list = async ({ fetch }: TestHost) => (await fetch("/todo")).json();

describe("the example mod_todo", () => {
  test("creates, lists, shows, changes and deletes", async () => {
    await using running = await start();
    const created = await send(running, "POST", "/todo", { title: "Milk" });
    assert.equal(created.status, 201);
    assert.equal(created.headers.get("location"), "/todo/1");
    assert.deepEqual(await created.json(), { id: 1, title: "Milk", done: false });
    await send(running, "POST", "/todo/", { title: "Bread", done: true });
    assert.deepEqual(await (await send(running, "PATCH", "/todo/1", { done: true })).json(), {
      id: 1,
      title: "Milk",
      done: true,
    });
    const shown = await running.fetch("/todo/2");
    assert.equal(shown.headers.get("content-type"), "application/json; charset=utf-8");
    assert.deepEqual(await shown.json(), { id: 2, title: "Bread", done: true });
    assert.equal((await send(running, "DELETE", "/todo/1")).status, 204);
    assert.deepEqual(await list(running), [{ id: 2, title: "Bread", done: true }]);
  });

  test("rejects invalid requests with the host's error pages", async () => {
    await using running = await start({ http_max_content_size: 100 });
    const refused = async (status: number, response: Response) => {
      assert.equal(response.status, status);
      return response.text();
    };
    assert.match(await refused(404, await send(running, "GET", "/todo/7")), /There is no todo 7/);
    assert.match(await refused(400, await send(running, "POST", "/todo", { title: " " })), /title is a text/);
    assert.match(await refused(400, await send(running, "POST", "/todo", {})), /needs a title/);
    assert.match(await refused(400, await send(running, "POST", "/todo", "{")), /no JSON/);
    await refused(413, await send(running, "POST", "/todo", { title: "x".repeat(100) }));
    await refused(415, await running.fetch("/todo", { method: "POST", body: "title=x" }));
    const wrong = await send(running, "PUT", "/todo/1");
    await refused(405, wrong);
    assert.match(wrong.headers.get("allow") ?? "", /PATCH/);
    assert.deepEqual(await list(running), []);
  });

  test("preserves its todos across a reload, and on the disk across an unload", async () => {
    await using running = await start();
    const titles = ["one", "two", "three"];
    await Promise.all(titles.map((title) => send(running, "POST", "/todo", { title })));
    await running.host.reload("todo");
    assert.equal(((await list(running)) as unknown[]).length, 3);
    await running.host.unload("todo");
    await running.host.load("todo");
    assert.deepEqual(((await list(running)) as { title: string }[]).map(({ title }) => title).sort(), titles.sort());
  });

  test("does not lose a change during a reload", async () => {
    await using running = await start();
    for (let turn = 0; turn < 5; turn += 1) {
      const reload = running.host.reload("todo");
      await send(running, "POST", "/todo", { title: `during ${turn}` });
      await reload;
    }
    assert.equal(((await list(running)) as unknown[]).length, 5);
  });
});
