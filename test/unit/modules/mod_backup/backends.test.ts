/** Folders and object stores: a write replaces the whole content, or changes nothing. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Backend, MAX_OBJECT_BYTES } from "#modules/mod_backup/backends/backend.ts";
import { FolderBackend } from "#modules/mod_backup/backends/folder.ts";
import { ObjectStoreBackend } from "#modules/mod_backup/backends/object_store.ts";
import { openBackend, readSecret } from "#modules/mod_backup/backends/open.ts";
import { hashOf } from "#modules/mod_backup/backends/signature.ts";
import { PIECE_BYTES } from "#modules/mod_backup/repository/cut.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import { prune, verify } from "#modules/mod_backup/repository/upkeep.ts";
import { ObjectStoreServer } from "./object_store_server.ts";
import { contentsOf, fileOf, noise, snapshotOf } from "./support.ts";

let folder: string;
let server: ObjectStoreServer;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-places-"));
  server = await ObjectStoreServer.start();
});
beforeEach(() => {
  server.before = () => undefined;
  server.objects.clear();
  server.requests.length = 0;
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

test("a file in a backup folder is read only up to the size of an object, even through a link", async () => {
  const path = await mkdtemp(join(folder, "long-"));
  await writeFile(join(path, "long"), "");
  await truncate(join(path, "long"), MAX_OBJECT_BYTES + 1);
  await symlink(join(path, "long"), join(path, "piece"));
  await assert.rejects(
    new FolderBackend(path).read("piece"),
    /piece is not an object of a backup: it has more than \d+ bytes/,
  );
});

test("a pipe in a folder of backups is reported by its path and never opened", {
  skip: process.platform === "win32" && "there are no pipes in folders",
}, async () => {
  const path = await mkdtemp(join(folder, "pipe-"));
  execFileSync("mkfifo", [join(path, "piece")]);
  await assert.rejects(new FolderBackend(path).read("piece"), /piece is not a regular file/);
  assert.equal(await new FolderBackend(path).read("missing"), undefined);
});

const listed = async (backend: Backend, prefix: string) => (await Array.fromAsync(backend.list(prefix))).sort();

/** The behaviour that every backend has. */
function contract(name: string, make: () => Backend) {
  describe(name, () => {
    test("objects are written, listed and removed by their names", async () => {
      const backend = make();
      assert.equal(await backend.read("a/b"), undefined);
      for (const each of ["a/b", "a/c/d", "a/c/e", "b/f", "top"]) await backend.write(each, Buffer.from(each));
      await backend.sync();
      assert.equal(String(await backend.read("a/c/d")), "a/c/d");
      await backend.write("a/b", Buffer.from("again"));
      assert.equal(String(await backend.read("a/b")), "again");
      assert.deepEqual(await listed(backend, "a/"), ["a/b", "a/c/d", "a/c/e"]);
      assert.deepEqual(await listed(backend, ""), ["a/b", "a/c/d", "a/c/e", "b/f", "top"]);
      assert.deepEqual(await listed(backend, "none/"), []);
      await backend.remove("a/b");
      await backend.remove("a/b");
      assert.equal(await backend.read("a/b"), undefined);
    });

    test("when two writers create the same object, only one succeeds", async () => {
      const backend = make();
      const made = await Promise.all([
        backend.create("lock", Buffer.from("1")),
        backend.create("lock", Buffer.from("2")),
      ]);
      assert.deepEqual(made.sort(), [false, true]);
    });

    test("a repository supports a second backup, a check and a removal", async () => {
      const repository = await openRepository(make(), { make: true });
      const contents = [noise(2 * PIECE_BYTES + 5, 3), noise(5000, 4)];
      for (const content of contents) await snapshotOf(repository, [fileOf("a", content), fileOf("b", noise(10, 5))]);
      assert.deepEqual((await verify(repository)).faults, []);
      assert.equal((await prune(repository, 1)).snapshots.length, 1);
      const [id = ""] = await repository.snapshotIds();
      assert.equal((await contentsOf(repository, id)).a, hashOf(contents[1] ?? ""));
      assert.deepEqual((await verify(repository)).faults, []);
    });
  });
}

let folders = 0;
contract("a folder", () => new FolderBackend(join(folder, String(++folders))));
contract("an object store", () => new ObjectStoreBackend(server.settings));

test("only the owner can read the folder, and remains of interrupted writes are removed", async () => {
  const path = join(folder, "private");
  const backend = new FolderBackend(path);
  await backend.write("a/b", Buffer.from("x"));
  assert.equal((await stat(path)).mode & 0o777, 0o700);
  assert.equal((await stat(join(path, "a/b"))).mode & 0o777, 0o600);
  await mkdir(join(path, "drafts"), { recursive: true });
  await writeFile(join(path, "drafts", "half"), "x");
  assert.deepEqual(await listed(backend, ""), ["a/b"]);
  await backend.tidy();
  assert.deepEqual((await readdir(path)).sort(), ["a"]);
});

describe("an object store that fails temporarily", () => {
  test("is tried again after server errors and broken connections", async () => {
    const attempts = new Map<string, number>();
    server.before = (method, path) => {
      const name = `${method} ${path}`;
      const count = attempts.get(name) ?? 0;
      attempts.set(name, count + 1);
      return ([500, "cut", 503, undefined] as const)[count % 4];
    };
    const repository = await openRepository(new ObjectStoreBackend(server.settings), { make: true });
    const content = noise(2 * PIECE_BYTES, 6);
    const { id } = await snapshotOf(repository, [fileOf("a", content)]);
    assert.equal((await contentsOf(repository, id)).a, hashOf(content));
  });

  test("recognizes the own lock after its response was lost", async () => {
    const backend = new ObjectStoreBackend(server.settings);
    let lost = false;
    server.before = (method) => {
      if (method !== "PUT" || lost) return undefined;
      lost = true;
      server.objects.set("host 1/ü/lock", Buffer.from("mine"));
      return "cut";
    };
    assert.equal(await backend.create("lock", Buffer.from("mine")), true);
    assert.equal(await backend.create("lock", Buffer.from("other")), false);
  });

  test("ends the backup if it keeps failing, and earlier snapshots stay", async () => {
    const repository = await openRepository(new ObjectStoreBackend(server.settings), { make: true });
    await snapshotOf(repository, [fileOf("a", noise(1000, 1))]);
    server.before = (method, path) => (method === "PUT" && path.includes("/objects/") ? 503 : undefined);
    await assert.rejects(snapshotOf(repository, [fileOf("a", noise(9000, 2))]), /failed with 503 \(InternalError/);
    server.before = () => undefined;
    assert.equal((await repository.snapshotIds()).length, 1);
    assert.deepEqual((await verify(repository)).faults, []);
  });
});

test("refusals of an object store name what to check, and are not repeated", async () => {
  const { settings } = server;
  const wrong = new ObjectStoreBackend({ ...settings, credentials: { keyId: "TESTKEY", secret: "wrong" } });
  await assert.rejects(
    wrong.read("a"),
    /403 \(SignatureDoesNotMatch: As the "test" wants it\); check backup_s3_key_id/,
  );
  assert.equal(server.requests.length, 1);
  const none = new ObjectStoreBackend({ ...settings, bucket: "none" });
  await assert.rejects(none.write("a", Buffer.from("x")), /NoSuchBucket.*create the bucket first/);
});

test("an endless response of an object store is abandoned, and its messages contain no terminal controls", async () => {
  const responses: Readonly<Record<string, string>> = {
    list: "<Key>a</Key><NextContinuationToken>same</NextContinuationToken>",
    refuse: "<Code>No\u001b[2J</Code><Message>&#x1b;]0;x&#x7; &#x7fffffff;</Message>",
  };
  let fate = "";
  let requests = 0;
  let sent = 0;
  const hostile = createServer((_, response) => {
    requests += 1;
    if (fate !== "long") return void response.writeHead(fate === "refuse" ? 403 : 200).end(responses[fate]);
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1024 * 1024))) sent += 1;
    };
    response.on("drain", more);
    more();
  }).listen(0, "127.0.0.1");
  await once(hostile, "listening");
  const { port } = hostile.address() as AddressInfo;
  const backend = new ObjectStoreBackend({
    ...server.settings,
    endpoint: new URL(`http://127.0.0.1:${port}`),
    prefix: "",
  });
  try {
    fate = "list";
    await assert.rejects(Array.fromAsync(backend.list("")), /the same page of its list repeatedly/);
    assert.equal(requests, 2);
    fate = "refuse";
    await assert.rejects(backend.read("a"), /403 \(No\\x1b\[2J: \\x1b\]0;x\\x07 \ufffd\)/);
    fate = "long";
    await assert.rejects(backend.read("a"), /sent a response of more than 67108864 bytes/);
    assert.ok(sent < 100);
  } finally {
    hostile.closeAllConnections();
    hostile.close();
  }
});

test("a missing bucket is an error and not an empty repository", async () => {
  const none = new ObjectStoreBackend({ ...server.settings, bucket: "none" });
  await assert.rejects(openRepository(none), /NoSuchBucket/);
});

test("destinations are parsed from what people write", async () => {
  assert.equal((await openBackend({ to: "b" }, "/srv")).name, "/srv/b");
  const store = { to: "s3://bucket/a//b/", s3_key_id: "k", s3_secret: "s" };
  assert.equal((await openBackend(store, "/")).name, "s3://bucket/a/b/");
  await assert.rejects(openBackend({}, "/"), /set the option backup_to/);
  await assert.rejects(openBackend({ to: "s3:///x" }, "/"), /names no bucket/);
  await assert.rejects(openBackend({ to: "s3://bucket" }, "/"), /MODHOST_BACKUP_S3_SECRET/);
  const file = join(folder, "key");
  await writeFile(file, "secret\n");
  assert.equal(String(await readSecret({ key_file: file })), "secret");
  await writeFile(file, "\n");
  await assert.rejects(readSecret({ key_file: file }), /is empty: `openssl/);
});

test("a key file of another user is refused with the user that it must belong to", async (t) => {
  const file = join(folder, "foreign-key");
  await writeFile(file, "secret\n");
  await chmod(file, 0);
  await chmod(folder, 0o755);
  if (process.getuid?.() === 0) {
    process.seteuid?.(65_534);
    t.after(() => process.seteuid?.(0));
  }
  await assert.rejects(
    readSecret({ key_file: file }),
    /foreign-key cannot be read .* the user that the server runs as/,
  );
});
