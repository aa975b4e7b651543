import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pack } from "tar-stream";
import { called, type Given } from "#test/unit/core/cli/called.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-rpc-other-"));
});
after(() => rm(folder, { recursive: true }));

interface Entry {
  readonly name: string;
  readonly linkname?: string;
  readonly mode?: number;
  readonly type?: "link" | "character-device" | "block-device" | "fifo";
}

const rpc = (words: readonly string[], given: Given) => called(folder, words, given);

describe("rpc: a server of another kind", () => {
  /** A server with the single command `get`, which returns an archive. */
  async function serving(entries: readonly Entry[], late?: string) {
    const operation = {
      summary: "Gets.",
      parameters: [{ name: "output", schema: { type: "string" } }],
      "x-command": { arguments: [{ name: "path", required: true, help: "" }], returns: "bytes" },
    };
    const server = createServer((request, response) => {
      if (request.url?.startsWith("/api/openapi.json?") === true) {
        response.end(JSON.stringify({ paths: { "/api/v0/get": { post: operation } }, components: { parameters: {} } }));
        return;
      }
      response.writeHead(200, { Trailer: "X-Stream-Error" });
      const archive = pack();
      for (const { name, linkname, mode, type } of entries) {
        if (type !== undefined) archive.entry({ name, type, linkname: linkname ?? "" });
        else if (linkname !== undefined) archive.entry({ name, type: "symlink", linkname });
        else if (name.endsWith("/")) archive.entry({ name, type: "directory", ...(mode && { mode }) });
        else archive.entry({ name, ...(mode && { mode }) }, "content");
      }
      archive.finalize();
      archive.on("data", (piece) => response.write(piece));
      archive.on("end", () => {
        if (late !== undefined) response.addTrailers({ "X-Stream-Error": late });
        response.end();
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { address, [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())) };
  }

  for (const [title, entries] of [
    ["through its name", [{ name: "x/" }, { name: "x/../../escaped" }]],
    ["through a link", [{ name: "x/" }, { name: "x/out", linkname: ".." }, { name: "x/out/escaped" }]],
    ["through the root", [{ name: "x", linkname: ".." }, { name: "x/escaped" }]],
  ] as const) {
    test(`get writes nothing outside ${title}`, async () => {
      await using server = await serving(entries);
      const { code, stderr } = await rpc(["get", "x", "--"], { address: server.address });
      assert.equal(code, 1);
      assert.match(stderr, /outside of the requested folder/);
      assert.ok(!(await readdir(folder)).includes("escaped"));
      await rm(join(folder, "x"), { recursive: true });
    });
  }

  test("a saved file keeps its permissions but not its setuid, setgid and sticky bits", async () => {
    await using server = await serving([
      { name: "rights/", mode: 0o7777 },
      { name: "rights/program", mode: 0o6755 },
      { name: "rights/sticky", mode: 0o1644 },
    ]);
    assert.equal((await rpc(["get", "rights"], { address: server.address })).code, 0);
    const modes = ["", "program", "sticky"].map(
      async (name) => (await stat(join(folder, "rights", name))).mode & 0o7000,
    );
    assert.deepEqual(await Promise.all(modes), [0, 0, 0]);
    assert.equal(
      (await stat(join(folder, "rights", "program"))).mode & 0o777 & ~process.umask(),
      0o755 & ~process.umask(),
    );
  });

  for (const type of ["link", "character-device", "block-device", "fifo"] as const) {
    test(`an entry that is a ${type} is refused, and nothing is created at its path`, async () => {
      await using server = await serving([{ name: "odd/" }, { name: "odd/entry", type, linkname: "/etc/hostname" }]);
      const { code, stderr } = await rpc(["get", "odd"], { address: server.address });
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`neither a file, a folder nor a link: odd/entry \\(${type}\\)`));
      assert.deepEqual(await readdir(join(folder, "odd")), []);
      await rm(join(folder, "odd"), { recursive: true });
    });
  }

  test("a link that an earlier archive left is replaced by the new entry at its path", async () => {
    for (const name of ["victim", "mirror"]) await mkdir(join(folder, name));
    await using first = await serving([{ name: "m/" }, { name: "m/d", linkname: "../victim" }]);
    await using second = await serving([{ name: "m/" }, { name: "m/d/" }, { name: "m/d/e/" }, { name: "m/d/e/file" }]);
    for (const { address } of [first, second, second]) {
      assert.deepEqual(await rpc(["get", "m", "--output=mirror"], { address }), {
        code: 0,
        stdout: "Saving file(s) to mirror\n",
        stderr: "",
      });
    }
    assert.deepEqual(await readdir(join(folder, "victim")), []);
    assert.equal(await readFile(join(folder, "mirror/d/e/file"), "utf8"), "content");
  });

  for (const [title, link, entries] of [
    ["above an entry", "into/d", [{ name: "n/" }, { name: "n/d/file" }]],
    ["above a link", "into/d", [{ name: "n/" }, { name: "n/d/taken", linkname: "other" }]],
    ["that is named for the target", "into", [{ name: "n/" }, { name: "n/file" }]],
  ] as const) {
    test(`nothing is written through a link ${title}, whoever created it`, async (t) => {
      t.after(() => rm(join(folder, "into"), { recursive: true }));
      await mkdir(join(folder, "reached", "taken"), { recursive: true });
      await mkdir(join(folder, dirname(link)), { recursive: true });
      await symlink(join(folder, "reached"), join(folder, link));
      await using server = await serving(entries);
      const { code, stderr } = await rpc(["get", "n", "--output=into"], { address: server.address });
      assert.equal(code, 1);
      assert.match(stderr, /through a link, .* outside of the requested folder/);
      assert.ok(stderr.endsWith(`: ${join(folder, link)}\n`));
      assert.deepEqual(await readdir(join(folder, "reached")), ["taken"]);
    });
  }

  test("a failure after the first bytes is reported with exit code 1", async () => {
    await using server = await serving([{ name: "y" }], "merkledag: not found");
    const { code, stderr } = await rpc(["get", "y"], { address: server.address });
    assert.deepEqual([code, stderr], [1, "modhost: merkledag: not found\n"]);
  });
});

describe("rpc: stats bw", () => {
  /** A server that counts: it returns one value, or two with `poll`. */
  async function counting() {
    const flag = { name: "poll", schema: { type: "boolean" } };
    const operation = { summary: "Counts.", parameters: [flag], "x-command": { arguments: [], returns: "stream" } };
    const paths = { "/api/v0/stats/bw": { post: operation } };
    const server = createServer((request, response) => {
      if (request.url?.startsWith("/api/openapi.json?") === true)
        response.end(JSON.stringify({ paths, components: { parameters: {} } }));
      else {
        const value = JSON.stringify({ TotalIn: 1_234_567, TotalOut: 999, RateIn: 1049.5, RateOut: 0 });
        response.end(`${value}\n`.repeat(request.url?.includes("poll=true") ? 2 : 1));
      }
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { address, [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())) };
  }

  test("stats bw prints the text of go-ipfs", async () => {
    await using server = await counting();
    const { stdout } = await rpc(["stats", "bw"], { address: server.address });
    assert.equal(stdout, "Bandwidth\nTotalIn: 1.2 MB\nTotalOut: 999 B\nRateIn: 1.0 kB/s\nRateOut: 0 B/s\n");
  });

  test("stats bw with --poll prints one line that changes", async () => {
    await using server = await counting();
    const { stdout } = await rpc(["stats", "bw", "--poll"], { address: server.address });
    const line = "   999 B      1.2 MB         0 B/s    1.0 kB/s      \r";
    assert.equal(stdout, `Total Up    Total Down  Rate Up     Rate Down\n${line}${line}`);
  });
});
