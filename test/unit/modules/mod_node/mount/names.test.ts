import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytes, MountFixture, skip } from "./support.ts";

const writers = fileURLToPath(new URL("../../../../fixtures/mount/writers.py", import.meta.url));
const noGit = spawnSync("git", ["--version"]).error !== undefined && "there is no git";

describe("the /ipns mount, used by other processes", { skip }, () => {
  let fixture: MountFixture;
  let own: string;
  let other: string;

  before(async () => {
    fixture = await MountFixture.make();
    const node = await fixture.open();
    own = node.repo.identity.peerId.toString();
    other = (await node.keys.generate("other", { type: "ed25519" })).id.toString();
    await node.mounts.mount(fixture);
  });
  after(() => fixture[Symbol.asyncDispose]());

  /** Resolves to the published path of a name, once it differs from `before`. */
  async function published(name: string, before?: string): Promise<string> {
    for (;;) {
      const path = await fixture.node.names.resolve(name, { offline: true }).catch(() => undefined);
      if (path !== undefined && path !== before) return path;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test("has a folder for each own key, and a link to that of the node", async () => {
    const names = await readdir(fixture.ipns);
    assert.deepEqual(names.sort(), [own, other, "local"].sort());
    assert.equal((await stat(join(fixture.ipns, other))).mode & 0o7777, 0o555);
    assert.equal(await fixture.shell("readlink ipns/local"), `${own}\n`);
    await assert.rejects(fixture.shell("touch ipns/new"), /Operation not permitted/);
    await assert.rejects(
      fixture.shell("mv ipns/local ipns/elsewhere"),
      /Operation not permitted|cross-device|Permission/,
    );
    await assert.rejects(fixture.shell("ls ipns/no-such-name"), /No such file/);
  });

  test("creates, extends, truncates, renames and removes files", async () => {
    const said = await fixture.shell(`cd ipns/local/
      echo one > file; echo two >> file; cat file
      printf TWO | dd of=file bs=1 seek=4 conv=notrunc status=none; cat file
      truncate -s 5 file; cat file; echo; truncate -s 7 file; od -An -c file | tr -d ' '
      echo three > file; cat file; ls -l file | cut -c1-10; wc -c < file
      mv file moved; cat moved; echo four > file; mv file moved; cat moved; rm moved; ls`);
    assert.equal(
      said,
      ["one\ntwo\n", "one\nTWO\n", "one\nT\n", "one\\nT\\0\\0\n", "three\n-rw-rw-rw-\n6\n", "three\n", "four\n"].join(
        "",
      ),
    );
  });

  test("preserves the bytes of names and links that are not UTF-8", async () => {
    const said = await fixture.shell(`cd ipns/local; mkdir latin; echo kept > latin/file
      echo one > latin/$'caf\\xe9'; mkdir latin/$'caf\\xe8'; mv latin/file latin/$'caf\\xe8'/; ln -s $'caf\\xe9' latin/link
      ls -b latin; cat latin/link latin/$'caf\\xe8'/file; rm -r latin; ls`);
    assert.equal(said, "caf\\350\ncaf\\351\nlink\none\nkept\n");
  });

  test("creates, renames and removes folders, and only removes empty ones", async () => {
    await fixture.shell("mkdir -p ipns/local/a/b; echo x > ipns/local/a/b/c; mv ipns/local/a ipns/local/z");
    assert.equal(await fixture.shell("cat ipns/local/z/b/c"), "x\n");
    await assert.rejects(fixture.shell("rmdir ipns/local/z"), /not empty/);
    await assert.rejects(fixture.shell("rm ipns/local/z"), /Is a directory/);
    await assert.rejects(fixture.shell("mkdir ipns/local/y; mv -T ipns/local/y ipns/local/z"), /not empty/);
    await assert.rejects(fixture.shell("mv -T ipns/local/z ipns/local/z/b/under"), /subdirectory of itself|Invalid/);
    await assert.rejects(
      fixture.shell(`python3 -c 'import os; os.rename("ipns/local/z", "ipns/${other}/z")'`),
      /Errno 18/,
    );
    await fixture.shell("mv ipns/local/z/b/c ipns/local/y/; rmdir ipns/local/z/b ipns/local/z; rm -r ipns/local/y");
    assert.deepEqual(await readdir(join(fixture.ipns, own)), []);
  });

  test("returns a large file that was written in pieces, also through /ipfs", async () => {
    await fixture.shell("dd if=/dev/urandom of=random bs=1M count=24 status=none; cp random ipns/local/large");
    await fixture.shell("cmp random ipns/local/large");
    await fixture.shell(`
      dd if=random of=ipns/local/large bs=1000 skip=5000 seek=9000 count=3000 conv=notrunc status=none
      dd if=random of=changed bs=1M status=none
      dd if=random of=changed bs=1000 skip=5000 seek=9000 count=3000 conv=notrunc status=none
      cmp changed ipns/local/large; truncate -s 9999999 changed; truncate -s 9999999 ipns/local/large; cmp changed ipns/local/large`);
    // A memory map is written, too.
    await fixture.shell(`python3 -c '
import mmap
for name in ("changed", "ipns/local/large"):
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped: mapped[123456:123459] = b"abc"'
      cmp changed ipns/local/large`);
    // The last bytes are part of the tree once nobody has written for a while.
    const expected = createHash("sha256")
      .update(await readFile(join(fixture.folder, "changed")))
      .digest("hex");
    for (let path: string | undefined; ; ) {
      path = await published(own, path);
      // A path that was published before the file was written does not contain it.
      const sum = await fixture.shell(`sha256sum ipfs${path.slice("/ipfs".length)}/large || true`);
      if (sum.startsWith(expected)) break;
    }
    await fixture.shell("rm ipns/local/large");
  });

  test("returns a copied tree completely", async () => {
    await fixture.shell(`mkdir tree; for d in 1 2 3 4 5; do mkdir tree/$d; for f in $(seq 40); do echo $d $f > tree/$d/$f; done; done
      ln -s 1/2 tree/link; cp -r tree ipns/${other}/tree; diff -r tree ipns/${other}/tree`);
    assert.equal((await fixture.shell(`find ipns/${other}/tree -type f | wc -l`)).trim(), "200");
    assert.equal(await fixture.shell(`cat ipns/${other}/tree/link`), "1 2\n");
  });

  test("keeps a file without a name usable", async () => {
    const said = await fixture.shell(`python3 -c '
import os
file = open("ipns/local/gone", "w+"); file.write("still here"); file.flush(); os.unlink("ipns/local/gone")
file.seek(0); print(file.read(), os.path.exists("ipns/local/gone"))'`);
    assert.equal(said, "still here False\n");
  });

  test("stores concurrent and random writes, memory maps, and writes to moved and unlinked files", async () => {
    await fixture.shell("mkdir ipns/local/writers");
    assert.equal(await fixture.shell(`python3 "${writers}" ipns/local/writers`), "right\n");
    // The stored content counts, and not the kernel's cache.
    const sums = "cd ipns/local/writers; sha256sum mapped shared order*";
    const before = await fixture.shell(sums);
    await fixture.node.mounts.mount(fixture);
    assert.equal(await fixture.shell(sums), before);
    await fixture.shell("rm -r ipns/local/writers");
  });

  test("works for editors and programs that create files of their own", async () => {
    const said = await fixture.shell(`mkdir ipns/local/edit; cd ipns/local/edit
      echo one > file; sed -i s/one/two/ file; cat file; touch file fresh; stat -c %s fresh
      echo three > .swap; mv .swap file; cat file; cp file 'file~'; touch -d '2001-02-03 UTC' fresh; date -ur fresh +%F
      printf x >> file; tail -c 2 file | od -An -c | tr -d ' \n'; echo; cd ..; rm -rf edit; ls -A`);
    assert.equal(said, "two\n0\nthree\n2001-02-03\n\\nx\n");
  });

  test("works for a git repository", { skip: noGit }, async () => {
    const said = await fixture.shell(`mkdir ipns/local/git; cd ipns/local/git
      git init -q .; git config user.email a@example.org; git config user.name a; git config commit.gpgsign false
      echo one > file; git add file; git commit -qm one; echo two > file; git status --short; git commit -qam two
      git fsck --no-progress; git checkout -q HEAD~1; cat file; git gc -q; git fsck --no-progress; git rev-list --all --count
      cd ..; rm -rf git; ls -A`);
    assert.equal(said, " M file\none\n2\n");
  });

  test("publishes flushed content under the name", async () => {
    await fixture.shell("echo hello > ipns/local/hello; sync ipns/local/hello");
    for (let path: string | undefined; ; ) {
      path = await published(own, path);
      // An earlier change may be published first.
      const said = await fixture.shell(`cat ipfs${path.slice("/ipfs".length)}/hello || true`);
      if (said === "hello\n") break;
    }
    assert.equal((await fixture.node.resolve(`/ipns/${own}/hello`, { offline: true })).remainder.length, 0);
  });

  test("shows other names as links to their content", async () => {
    const root = await fixture.add([["theirs", bytes("theirs")]]);
    const { resolve } = fixture.node.names;
    fixture.node.names.resolve = async (name) => {
      if (name === "example.org") return `/ipfs/${root}`;
      throw new Error("not known");
    };
    try {
      assert.equal(await fixture.shell("readlink ipns/example.org"), `${fixture.ipfs}/${root}\n`);
      assert.equal(await fixture.shell("cat ipns/example.org/theirs"), "theirs");
      await assert.rejects(fixture.shell("ls ipns/example.com"), /No such file/);
    } finally {
      fixture.node.names.resolve = resolve;
    }
  });

  test("stores written content, which survives garbage collection, a restart and the next mount", async () => {
    await fixture.shell("mkdir ipns/local/kept; seq 10000 > ipns/local/kept/numbers");
    for await (const _ of fixture.node.collect());
    await fixture.shell("seq 10000 | cmp - ipns/local/kept/numbers; echo last > ipns/local/kept/last");
    await fixture.close();
    assert.deepEqual(await fixture.mounted(), []);
    const node = await fixture.open();
    for await (const _ of node.collect());
    await node.mounts.mount(fixture);
    assert.equal(await fixture.shell("seq 10000 | cmp - ipns/local/kept/numbers; cat ipns/local/kept/last"), "last\n");
  });

  test("shows the current content of a name that was published elsewhere meanwhile", async () => {
    const { node } = fixture;
    await node.mounts.unmount();
    assert.equal(node.mounts.active, false);
    const root = await fixture.add([["newer", bytes("newer")]]);
    await node.names.publish(await node.names.key("self"), `/ipfs/${root}`, { offline: true });
    await node.mounts.mount(fixture);
    assert.equal(await fixture.shell("ls ipns/local/; cat ipns/local/newer"), "newer\nnewer");
  });

  test("replaces its mounts when it is mounted again", async () => {
    const before = fixture.node.mounts.pid;
    await fixture.node.mounts.mount(fixture);
    assert.notEqual(fixture.node.mounts.pid, before);
    assert.deepEqual((await fixture.mounted()).sort(), [fixture.ipfs, fixture.ipns]);
    assert.equal(await fixture.shell("ls ipns/local/"), "newer\n");
  });
});
