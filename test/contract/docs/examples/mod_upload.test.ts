import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { exampleFile, listed } from "./support.ts";

const start = (config: Record<string, unknown> = {}) =>
  createTestHost({ modules: [exampleFile("upload")], config: { ...config } });

const post = ({ fetch }: TestHost, ...files: [name: string, content: string | Uint8Array<ArrayBuffer>][]) => {
  const body = new FormData();
  for (const [name, content] of files) body.append("file", new Blob([content]), name);
  return fetch("/upload/", { method: "POST", body, redirect: "manual" });
};

describe("the example mod_upload", () => {
  test("shows a form, receives files, and lists and serves them", async () => {
    await using running = await start();
    assert.match(await (await running.fetch("/upload/")).text(), /<form method="post" enctype="multipart\/form-data">/);
    const response = await post(running, ["notes.txt", "one"], ["my photo.bin", Buffer.from([0, 1, 255])]);
    assert.equal(response.status, 303);
    assert.equal(response.headers.get("location"), "/upload/");
    const page = await (await running.fetch("/upload/")).text();
    assert.deepEqual(listed(page), ["file/my%20photo.bin", "file/notes.txt"]);
    const photo = await running.fetch("/upload/file/my%20photo.bin");
    assert.deepEqual(Buffer.from(await photo.arrayBuffer()), Buffer.from([0, 1, 255]));
    assert.equal(photo.headers.get("content-disposition"), "attachment");
    assert.equal(photo.headers.get("x-content-type-options"), "nosniff");
  });

  test("stores both of two files with the same name, and ignores folders in names", async () => {
    await using running = await start();
    await post(running, ["a.txt", "first"]);
    await post(running, ["a.txt", "second"]);
    await post(running, ["..\\..\\a.txt", "third"], [".htaccess", "fourth"]);
    const names = listed(await (await running.fetch("/upload/")).text());
    assert.deepEqual(
      names.map((name) => name.replace(/-[0-9a-f]{8}/, "-#")),
      ["file/a-#.txt", "file/a-#.txt", "file/a.txt", "file/htaccess"],
    );
    assert.equal(await (await running.fetch("/upload/file/a.txt")).text(), "first");
    const files = await readdir(running.folder, { recursive: true });
    assert.equal(files.filter((name) => /txt|htaccess/.test(name)).length, 4);
  });

  test("escapes names on the page", async () => {
    await using running = await start();
    await post(running, ["<i>&.txt", "x"]);
    const page = await (await running.fetch("/upload/")).text();
    assert.ok(!page.includes("<i>"), page);
  });

  test("responds with 413 beyond upload_max_size and with 400 without a file, and leaves nothing behind", async () => {
    await using running = await start({ upload_max_size: 1000 });
    assert.equal((await post(running, ["large.bin", "x".repeat(1001)])).status, 413);
    assert.equal((await post(running)).status, 400);
    assert.equal((await running.fetch("/upload/", { method: "POST", body: "file=1" })).status, 400);
    assert.deepEqual(await readdir(join(running.folder, "upload")), []);
    assert.equal((await post(running, ["just.bin", "x".repeat(1000)])).status, 303);
  });

  test("is not limited by http_max_content_size", async () => {
    await using running = await start({ http_max_content_size: 1000 });
    const content = Buffer.alloc(3_000_000, "modhost ");
    assert.equal((await post(running, ["long.bin", content])).status, 303);
    assert.ok(Buffer.from(await (await running.fetch("/upload/file/long.bin")).arrayBuffer()).equals(content));
  });

  test("leaves nothing of an upload whose client disconnects", async (t) => {
    await using running = await start();
    const folder = join(running.folder, "upload");
    const sending = request(running.url("/upload/"), {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=b" },
    });
    sending.on("error", () => undefined);
    sending.write('--b\r\nContent-Disposition: form-data; name="file"; filename="half.bin"\r\n\r\nthe first half');
    await t.waitFor(async () => assert.equal((await readdir(folder)).length, 1), { interval: 5, timeout: 60_000 });
    assert.deepEqual(listed(await (await running.fetch("/upload/")).text()), []);
    sending.destroy();
    await t.waitFor(async () => assert.deepEqual(await readdir(folder), []), { interval: 5, timeout: 60_000 });
  });

  test("is not loaded with an invalid upload_max_size", async () => {
    await assert.rejects(start({ upload_max_size: 0 }), /upload_max_size is 0/);
  });
});
