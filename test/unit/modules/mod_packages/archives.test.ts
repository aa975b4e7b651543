import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { packageArchive } from "#test/support/npm_registry.ts";
import { entry } from "#test/support/tar.ts";
import { modulePackage, PackageSite } from "./support.ts";

const MIB = 1024 * 1024;

/** Publishes a module with more entries in its archive, and asserts that it is refused. */
async function refusesEntry(entries: Parameters<typeof packageArchive>[0]["entries"], code: string, message: string) {
  await using site = await PackageSite.open();
  await site.publish({ entries: entries as [] });
  await site.refuses("shop", code as "ARCHIVE_LINK", message);
}

describe("archives of packages", () => {
  test("a symbolic link is refused", async () => {
    await refusesEntry(
      [{ name: "package/key", type: "symlink", linkname: "/etc/passwd" }],
      "ARCHIVE_LINK",
      "The archive of modhost-mod-shop contains the link package/key: packages may contain files only. Choose another version",
    );
  });

  test("a hard link is refused", async () => {
    await refusesEntry(
      [{ name: "package/key", type: "link", linkname: "package/index.js" }],
      "ARCHIVE_LINK",
      "The archive of modhost-mod-shop contains the link package/key: packages may contain files only. Choose another version",
    );
  });

  for (const type of ["character-device", "block-device", "fifo"] as const) {
    test(`an entry of the type ${type} is refused`, async () => {
      await refusesEntry(
        [{ name: "package/dev", type }],
        "ARCHIVE_SPECIAL",
        `The archive of modhost-mod-shop contains package/dev, which is neither a file nor a folder (${type}): choose another version`,
      );
    });
  }

  for (const [path, reason] of [
    ["/etc/cron.d/x", "which is absolute"],
    ["C:/x.js", "which is absolute"],
    ["package/../../../x.js", "which leads out of the package"],
    ["../x.js", "which leads out of the package"],
    ["package/a/../../../x.js", "which leads out of the package"],
    ["package\\..\\x.js", "which contains characters that no path may contain"],
    ["package/a\nb.js", "which contains characters that no path may contain"],
    ["x.js", "which is in no folder"],
  ] as const) {
    test(`the path ${JSON.stringify(path)} is refused`, async () => {
      const shown = path.replace("\n", "\\x0a");
      await refusesEntry(
        [{ name: path, body: "x" }],
        "ARCHIVE_PATH",
        `The archive of modhost-mod-shop contains the path ${shown}, ${reason}: choose another version`,
      );
    });
  }

  test("a folder that leads out of the package is refused", async () => {
    await refusesEntry(
      [{ name: "package/../../x/", type: "directory" }],
      "ARCHIVE_PATH",
      "The archive of modhost-mod-shop contains the path package/../../x/, which leads out of the package: choose another version",
    );
  });

  test("a path in an extended header is checked like any other", async () => {
    await using site = await PackageSite.open();
    const plain = gunzipSync(await packageArchive(shopPackage()));
    const path = "package/../../x.js";
    const record = `${path.length + "00 path=\n".length} path=${path}\n`;
    // The archive ends with two empty blocks of 512 bytes.
    const archive = Buffer.concat([plain.subarray(0, -1024), entry("x", record), entry("0", "x"), Buffer.alloc(1024)]);
    await site.publish({ archive: gzipSync(archive) });
    await site.refuses("shop", "ARCHIVE_PATH", /the path package\/\.\.\/\.\.\/x\.js, which leads out of the package/);
  });

  for (const [one, other] of [
    ["a.js", "A.js"],
    ["lib/a.js", "Lib/b.js"],
    ["a", "a/b.js"],
    ["caf\u00e9.js", "cafe\u0301.js"],
  ] as const) {
    test(`${JSON.stringify([one, other])} collide, and are refused`, async () => {
      await using site = await PackageSite.open();
      const entries = [one, other].map((path) => ({ name: `package/${path}`, body: "x" }));
      await site.publish({ entries });
      await site.refuses(
        "shop",
        "ARCHIVE_COLLISION",
        /contains both .* and .*, which are one file on some file systems/,
      );
    });
  }

  test("a file that occurs twice is refused, unless both are equal", async () => {
    await using site = await PackageSite.open();
    const first = { name: "package/a.js", body: "x" };
    await site.publish({ entries: [first, { name: "package/./a.js", body: "y" }] });
    await site.refuses("shop", "ARCHIVE_COLLISION", /contains both a\.js and a\.js/);
    await site.publish({ entries: [first, { name: "package/./a.js", body: "x" }] });
    assert.equal((await site.fetch()).files, 3);
  });

  test("more files than the limit are refused, and folders count", async () => {
    await using site = await PackageSite.open();
    site.set({ limits: { ...site.settings.limits, files: 3 } });
    const entries = [1, 2].map((each) => ({ name: `package/${each}/`, type: "directory" as const }));
    await site.publish({ entries });
    await site.refuses(
      "shop",
      "ARCHIVE_FILES",
      "modhost-mod-shop has more than 3 files with its dependencies, which is the limit: choose another version",
    );
  });

  test("dependencies count for the limits of the module", async () => {
    await using site = await PackageSite.open();
    site.set({ limits: { ...site.settings.limits, files: 3 } });
    await site.registry.publish({ name: "pad", files: { "index.js": "" } });
    await site.publish({ manifest: { dependencies: { pad: "*" } } });
    await site.refuses("shop", "ARCHIVE_FILES", /^modhost-mod-shop has more than 3 files/);
  });

  test("more bytes than the limit are refused", async () => {
    await using site = await PackageSite.open();
    site.set({ limits: { files: 10, bytes: MIB, ratio: 1e9 } });
    await site.publish({ files: { "big.bin": "x".repeat(2 * MIB) } });
    await site.refuses(
      "shop",
      "ARCHIVE_SIZE",
      "modhost-mod-shop has more than 1.0 MB with its dependencies, which is the limit: choose another version",
    );
  });

  test("an archive that grows by more than the limit is refused", async () => {
    await using site = await PackageSite.open();
    // gzip reaches a ratio of about 1,000.
    await site.publish({ files: { "bomb.bin": "\0".repeat(4 * MIB) } });
    await site.refuses(
      "shop",
      "ARCHIVE_RATIO",
      "The archive of modhost-mod-shop grows to more than 200 times its size when it is unpacked, which is the limit: choose another version",
    );
  });

  test("a bomb is not unpacked to its end", async () => {
    await using site = await PackageSite.open();
    site.set({ limits: { files: 10, bytes: MIB, ratio: 1e9 } });
    // A tar archive of 300 MiB as 300 KiB. Unpacking all of it would take much longer.
    const block = gzipSync(Buffer.alloc(30 * MIB));
    const start = gzipSync(entry("0", "x", { name: "package/x", size: 300 * MIB }).subarray(0, 512));
    await site.publish({ archive: Buffer.concat([start, ...Array.from({ length: 10 }, () => block)]) });
    const began = process.cpuUsage();
    await site.refuses("shop", "ARCHIVE_SIZE", /has more than 1\.0 MB/);
    assert.ok(process.cpuUsage(began).user < 5e6);
  });

  for (const [title, block] of [
    ["zeros", gzipSync(Buffer.alloc(MIB))],
    ["random bytes", gzipSync(randomBytes(MIB))],
  ] as const) {
    test(`the download of an archive without end is aborted: ${title}`, async () => {
      await using site = await PackageSite.open();
      site.set({ limits: { files: 10, bytes: 20 * MIB, ratio: 1e9 } });
      await site.publish();
      const closed = Promise.withResolvers<void>();
      let sent = 0;
      site.registry.intercept = ({ url }, response) => {
        if (!url?.endsWith(".tgz")) return false;
        response
          .writeHead(200)
          .write(gzipSync(entry("0", "x", { name: "package/x", size: 2 ** 33 - 1 }).subarray(0, 512)));
        const write = () => {
          do sent += block.length;
          while (!response.destroyed && response.write(block));
        };
        response.on("drain", write).on("close", () => closed.resolve());
        write();
        return true;
      };
      await site.refuses("shop", "ARCHIVE_SIZE", /^modhost-mod-shop has more than 21\.0 MB/);
      await closed.promise;
      assert.ok(sent < 200 * MIB, `${sent} bytes`);
    });
  }

  test("an archive that is none is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish({ archive: Buffer.from("not an archive") });
    await site.refuses("shop", "ARCHIVE_INVALID", /^The archive of modhost-mod-shop cannot be read \(.*header.*\)/);
  });

  test("an archive that ends early is refused", async () => {
    await using site = await PackageSite.open();
    const archive = await packageArchive(shopPackage());
    await site.publish({ archive: archive.subarray(0, archive.length - 100) });
    await site.refuses("shop", "ARCHIVE_INVALID", /^The archive of modhost-mod-shop cannot be read \(.*\)/);
  });

  test("files get plain modes, and only programs may be run", async () => {
    await using site = await PackageSite.open();
    await site.publish({
      entries: [
        { name: "package/run.sh", mode: 0o4777, body: "x" },
        { name: "package/note.txt", mode: 0o666, body: "x" },
      ],
    });
    const { module, version } = await site.fetch();
    const folder = join(site.settings.store, module, version.tree, "node_modules/modhost-mod-shop");
    const mask = process.umask();
    assert.equal((await stat(join(folder, "run.sh"))).mode & 0o7777, 0o755 & ~mask);
    assert.equal((await stat(join(folder, "note.txt"))).mode & 0o7777, 0o644 & ~mask);
    assert.equal(await readFile(join(folder, "index.js"), "utf8"), "export default function load() {}\n");
  });
});

/** The files of a module that is fine. */
function shopPackage() {
  const { files, manifest } = modulePackage();
  return { files: files ?? {}, manifest: { name: "modhost-mod-shop", version: "1.0.0", ...manifest } };
}
