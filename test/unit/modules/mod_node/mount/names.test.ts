import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytes, MountPlace, skip } from "./support.ts";

const writers = fileURLToPath(new URL("../../../../fixtures/mount/writers.py", import.meta.url));
const noGit = spawnSync("git", ["--version"]).error !== undefined && "there is no git";

describe("names, read and written by other processes", { skip }, () => {
  let place: MountPlace;
  let own: string;
  let other: string;

  before(async () => {
    place = await MountPlace.make();
    const node = await place.open();
    own = node.repo.identity.peerId.toString();
    other = (await node.keys.generate("other", { type: "ed25519" })).id.toString();
    await node.mounts.mount(place);
  });
  after(() => place[Symbol.asyncDispose]());

  /** What a name is published to stand for, as soon as it differs from what it stood for. */
  async function published(name: string, before?: string): Promise<string> {
    for (;;) {
      const path = await place.node.names.resolve(name, { offline: true }).catch(() => undefined);
      if (path !== undefined && path !== before) return path;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test("there is a folder for each own key, and a link to that of the node", async () => {
    const names = await readdir(place.ipns);
    assert.deepEqual(names.sort(), [own, other, "local"].sort());
    assert.equal((await stat(join(place.ipns, other))).mode & 0o7777, 0o555);
    assert.equal(await place.shell("readlink ipns/local"), `${own}\n`);
    await assert.rejects(place.shell("touch ipns/new"), /Operation not permitted/);
    await assert.rejects(
      place.shell("mv ipns/local ipns/elsewhere"),
      /Operation not permitted|cross-device|Permission/,
    );
    await assert.rejects(place.shell("ls ipns/no-such-name"), /No such file/);
  });

  test("files are made, written on, cut, renamed and removed", async () => {
    const said = await place.shell(`cd ipns/local/
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

  test("names and links that are not UTF-8 keep their bytes", async () => {
    const said = await place.shell(`cd ipns/local; mkdir latin; echo kept > latin/file
      echo one > latin/$'caf\\xe9'; mkdir latin/$'caf\\xe8'; mv latin/file latin/$'caf\\xe8'/; ln -s $'caf\\xe9' latin/link
      ls -b latin; cat latin/link latin/$'caf\\xe8'/file; rm -r latin; ls`);
    assert.equal(said, "caf\\350\ncaf\\351\nlink\none\nkept\n");
  });

  test("folders are made, renamed and removed, and only when they are empty", async () => {
    await place.shell("mkdir -p ipns/local/a/b; echo x > ipns/local/a/b/c; mv ipns/local/a ipns/local/z");
    assert.equal(await place.shell("cat ipns/local/z/b/c"), "x\n");
    await assert.rejects(place.shell("rmdir ipns/local/z"), /not empty/);
    await assert.rejects(place.shell("rm ipns/local/z"), /Is a directory/);
    await assert.rejects(place.shell("mkdir ipns/local/y; mv -T ipns/local/y ipns/local/z"), /not empty/);
    await assert.rejects(place.shell("mv -T ipns/local/z ipns/local/z/b/under"), /subdirectory of itself|Invalid/);
    await assert.rejects(
      place.shell(`python3 -c 'import os; os.rename("ipns/local/z", "ipns/${other}/z")'`),
      /Errno 18/,
    );
    await place.shell("mv ipns/local/z/b/c ipns/local/y/; rmdir ipns/local/z/b ipns/local/z; rm -r ipns/local/y");
    assert.deepEqual(await readdir(join(place.ipns, own)), []);
  });

  test("a large file that is written in pieces is the one that is read, here and below the other path", async () => {
    await place.shell("dd if=/dev/urandom of=random bs=1M count=24 status=none; cp random ipns/local/large");
    await place.shell("cmp random ipns/local/large");
    await place.shell(`
      dd if=random of=ipns/local/large bs=1000 skip=5000 seek=9000 count=3000 conv=notrunc status=none
      dd if=random of=changed bs=1M status=none
      dd if=random of=changed bs=1000 skip=5000 seek=9000 count=3000 conv=notrunc status=none
      cmp changed ipns/local/large; truncate -s 9999999 changed; truncate -s 9999999 ipns/local/large; cmp changed ipns/local/large`);
    // What is mapped is written, too.
    await place.shell(`python3 -c '
import mmap
for name in ("changed", "ipns/local/large"):
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped: mapped[123456:123459] = b"abc"'
      cmp changed ipns/local/large`);
    // The last of it is in the tree when nobody has written for a while.
    const expected = createHash("sha256")
      .update(await readFile(join(place.folder, "changed")))
      .digest("hex");
    for (let path: string | undefined; ; ) {
      path = await published(own, path);
      // What was published before the file was there does not have it.
      const sum = await place.shell(`sha256sum ipfs${path.slice("/ipfs".length)}/large || true`);
      if (sum.startsWith(expected)) break;
    }
    await place.shell("rm ipns/local/large");
  });

  test("a tree that is copied in is read back whole", async () => {
    await place.shell(`mkdir tree; for d in 1 2 3 4 5; do mkdir tree/$d; for f in $(seq 40); do echo $d $f > tree/$d/$f; done; done
      ln -s 1/2 tree/link; cp -r tree ipns/${other}/tree; diff -r tree ipns/${other}/tree`);
    assert.equal((await place.shell(`find ipns/${other}/tree -type f | wc -l`)).trim(), "200");
    assert.equal(await place.shell(`cat ipns/${other}/tree/link`), "1 2\n");
  });

  test("a file without a name can be used on", async () => {
    const said = await place.shell(`python3 -c '
import os
file = open("ipns/local/gone", "w+"); file.write("still here"); file.flush(); os.unlink("ipns/local/gone")
file.seek(0); print(file.read(), os.path.exists("ipns/local/gone"))'`);
    assert.equal(said, "still here False\n");
  });

  test("several write at once, at random places, through maps, into what is moved and what has no name", async () => {
    await place.shell("mkdir ipns/local/writers");
    assert.equal(await place.shell(`python3 "${writers}" ipns/local/writers`), "right\n");
    // What is there now is what was kept, not what the kernel remembers.
    const sums = "cd ipns/local/writers; sha256sum mapped shared order*";
    const before = await place.shell(sums);
    await place.node.mounts.mount(place);
    assert.equal(await place.shell(sums), before);
    await place.shell("rm -r ipns/local/writers");
  });

  test("editors, and programs that keep files of their own, find what they rely on", async () => {
    const said = await place.shell(`mkdir ipns/local/edit; cd ipns/local/edit
      echo one > file; sed -i s/one/two/ file; cat file; touch file fresh; stat -c %s fresh
      echo three > .swap; mv .swap file; cat file; cp file 'file~'; touch -d '2001-02-03 UTC' fresh; date -ur fresh +%F
      printf x >> file; tail -c 2 file | od -An -c | tr -d ' \n'; echo; cd ..; rm -rf edit; ls -A`);
    assert.equal(said, "two\n0\nthree\n2001-02-03\n\\nx\n");
  });

  test("git keeps a repository there", { skip: noGit }, async () => {
    const said = await place.shell(`mkdir ipns/local/git; cd ipns/local/git
      git init -q .; git config user.email a@example.org; git config user.name a; git config commit.gpgsign false
      echo one > file; git add file; git commit -qm one; echo two > file; git status --short; git commit -qam two
      git fsck --no-progress; git checkout -q HEAD~1; cat file; git gc -q; git fsck --no-progress; git rev-list --all --count
      cd ..; rm -rf git; ls -A`);
    assert.equal(said, " M file\none\n2\n");
  });

  test("what was flushed is published, and stands under the name for everybody", async () => {
    await place.shell("echo hello > ipns/local/hello; sync ipns/local/hello");
    for (let path: string | undefined; ; ) {
      path = await published(own, path);
      // What was written before may be published only now.
      const said = await place.shell(`cat ipfs${path.slice("/ipfs".length)}/hello || true`);
      if (said === "hello\n") break;
    }
    assert.equal((await place.node.resolve(`/ipns/${own}/hello`, { offline: true })).remainder.length, 0);
  });

  test("names of others are links to what they stand for", async () => {
    const root = await place.add([["theirs", bytes("theirs")]]);
    const { resolve } = place.node.names;
    place.node.names.resolve = async (name) => {
      if (name === "example.org") return `/ipfs/${root}`;
      throw new Error("not known");
    };
    try {
      assert.equal(await place.shell("readlink ipns/example.org"), `${place.ipfs}/${root}\n`);
      assert.equal(await place.shell("cat ipns/example.org/theirs"), "theirs");
      await assert.rejects(place.shell("ls ipns/example.com"), /No such file/);
    } finally {
      place.node.names.resolve = resolve;
    }
  });

  test("garbage collection keeps what was written; so do the next start and the next mount", async () => {
    await place.shell("mkdir ipns/local/kept; seq 10000 > ipns/local/kept/numbers");
    for await (const _ of place.node.collect());
    await place.shell("seq 10000 | cmp - ipns/local/kept/numbers; echo last > ipns/local/kept/last");
    await place.close();
    assert.deepEqual(await place.mounted(), []);
    const node = await place.open();
    for await (const _ of node.collect());
    await node.mounts.mount(place);
    assert.equal(await place.shell("seq 10000 | cmp - ipns/local/kept/numbers; cat ipns/local/kept/last"), "last\n");
  });

  test("a name that was published elsewhere meanwhile shows what it stands for now", async () => {
    const { node } = place;
    await node.mounts.unmount();
    assert.equal(node.mounts.active, false);
    const root = await place.add([["newer", bytes("newer")]]);
    await node.names.publish(await node.names.key("self"), `/ipfs/${root}`, { offline: true });
    await node.mounts.mount(place);
    assert.equal(await place.shell("ls ipns/local/; cat ipns/local/newer"), "newer\nnewer");
  });

  test("mounting again takes the place of the live mounts", async () => {
    const before = place.node.mounts.pid;
    await place.node.mounts.mount(place);
    assert.notEqual(place.node.mounts.pid, before);
    assert.deepEqual((await place.mounted()).sort(), [place.ipfs, place.ipns]);
    assert.equal(await place.shell("ls ipns/local/"), "newer\n");
  });
});
