import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createBLAKE3 } from "hash-wasm";
import { base58btc } from "multiformats/bases/base58";
import { create as createDigest } from "multiformats/hashes/digest";
import { Denylists, denylistFolders } from "#node/content/denylists/denylists.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { parseCid } from "#node/formats/cid/text.ts";

const v0 = "QmS5qqCDCtCxTjiyHG7BzX4M1Ysa1K7a4cPCwgnwaEuYS9";
const v1 = String(parseCid(v0).toV1());
const other = "bafkreiclt4wdev335mplzcvsuhrcn6vksf3kqhgu53n2uixyudnzdglswu";
const key = "k51qzi5uqu5dhmzyv3zac033i7rl9hkgczxyl81lwoukda2htteop7d3x0y1mf";

let root: string;
let folders = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "modhost-denylists-"));
});
after(() => rm(root, { recursive: true, force: true }));

/** The lists of these files, in the order of their names. */
async function lists(files: Readonly<Record<string, string>>) {
  const folder = join(root, String(folders++));
  await mkdir(folder);
  const put = (name: string, text: string) => writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(files)) await put(name, text);
  const warned: string[] = [];
  const changes: boolean[] = [];
  const made = new Denylists({
    folders: [join(root, "missing"), folder],
    warn: (sentence) => warned.push(sentence.replace(folder, "F")),
    changed: ({ isEmpty }) => changes.push(isEmpty),
  });
  await made.reread();
  /** "served", or the code of the failure. */
  const answerTo = (path: string): string => {
    const [, space = "", name = "", ...segments] = path.split("/");
    try {
      made.requirePath(space as "ipfs", name, segments);
      return "served";
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  return { made, warned, changes, answerTo, put, remove: (name: string) => unlink(join(folder, name)) };
}

const blocked = "CONTENT_BLOCKED";

/** Of one list: which paths are denied. */
async function denied(text: string, paths: readonly string[]): Promise<string[]> {
  const { answerTo, warned } = await lists({ "a.deny": text });
  assert.deepEqual(warned, []);
  return paths.filter((path) => answerTo(path) === blocked);
}

test("a CID denies its multihash, whatever its version and codec", async () => {
  const { made } = await lists({ "a.deny": `/ipfs/${v0}\n` });
  assert.equal(made.denies(parseCid(v1)), true);
  assert.equal(made.denies(parseCid(other)), false);
  assert.throws(() => made.requireBlock(parseCid(v1)), { message: `${v1} is blocked and cannot be provided` });
  assert.throws(() => made.requirePath("ipfs", v1), { message: `/ipfs/${v1} is blocked and cannot be provided` });
});

test("a path denies itself, one with a star all that begins so", async () => {
  const paths = ["", "/a", "/a/", "/ab", "/a/b", "/b"].map((path) => `/ipfs/${v1}${path}`);
  const ends = (found: readonly string[]) => found.map((path) => path.slice(`/ipfs/${v1}`.length));
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/a/`, paths)), ["/a", "/a/"]);
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/a*`, paths)), ["/a", "/a/", "/ab", "/a/b"]);
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/*`, paths)), ["", "/a", "/a/", "/ab", "/a/b", "/b"]);
  assert.deepEqual(await denied(`/ipfs/${v0}/a%20b%2A`, [`/ipfs/${v0}/a b*`]), [`/ipfs/${v0}/a b*`]);
});

test("names are denied by their key in any form, and by domain in either case", async () => {
  const peer = parseCid(key);
  const forms = [key, String(peer), base58btc.baseEncode(peer.multihash.bytes)];
  const paths = [...forms, "Gone.example.org.", "here.example.org"].map((name) => `/ipns/${name}`);
  assert.deepEqual(await denied(`/ipns/${key}\n/ipns/gone.example.org`, paths), paths.slice(0, -1));
  assert.deepEqual(await denied("/ipns/x.example.org/p*", ["/ipns/x.example.org", "/ipns/x.example.org/pq"]), [
    "/ipns/x.example.org/pq",
  ]);
});

const sha = (text: string) => createHash("sha256").update(text).digest();
const twice = (text: string) => base58btc.baseEncode(createDigest(sha256.code, sha(text)).bytes);

test("double hashes are of base58, or of the older form", async () => {
  const { made } = await lists({ "a.deny": `//${twice(v0)}` });
  assert.equal(made.denies(parseCid(v1)), true);
  const old = await lists({ "a.deny": `//${sha(`${v1}/`).toString("hex")}` });
  assert.equal(old.made.denies(parseCid(v0)), true);
  const paths = [`/ipfs/${v0}/a`, `/ipfs/${v0}/b`, "/ipns/gone.example.org", `/ipns/${key}`];
  assert.deepEqual(await denied(`//${twice(`${v0}/a`)}`, paths), paths.slice(0, 1));
  assert.deepEqual(await denied(`//${sha(`${v1}/b`).toString("hex")}`, paths), paths.slice(1, 2));
  assert.deepEqual(await denied(`//${twice("/ipns/gone.example.org")}`, paths), paths.slice(2, 3));
  assert.deepEqual(await denied(`//${sha("gone.example.org/").toString("hex")}`, paths), paths.slice(2, 3));
  const multihash = base58btc.baseEncode(parseCid(key).multihash.bytes);
  assert.deepEqual(await denied(`//${twice(multihash)}`, paths), paths.slice(3));
  const hasher = await createBLAKE3();
  const blake3 = createDigest(0x1e, hasher.init().update(v0).digest("binary")).bytes;
  assert.deepEqual(await denied(`//${base58btc.baseEncode(blake3)}`, [`/ipfs/${v0}`, paths[0] as string]), [
    `/ipfs/${v0}`,
  ]);
  // As the specification of the format has it.
  const example = "//QmX9dhRcQcKUw3Ws8485T5a9dtjrSCQaUAHnG4iK9i4ceM";
  const path = "/ipfs/bafybeidjwik6im54nrpfg7osdvmx7zojl5oaxqel5cmsz46iuelwf5acja";
  assert.deepEqual(await denied(example, [path]), [path]);
});

test("of the items that match, the last one counts, in a list and among lists", async () => {
  const paths = ["photo", "photo1", "photo2"].map((path) => `/ipfs/${v0}/${path}`);
  assert.deepEqual(await denied(`/ipfs/${v0}/p*\n!/ipfs/${v0}/photo1`, paths), [paths[0], paths[2]]);
  assert.deepEqual(await denied(`!/ipfs/${v0}/photo1\n/ipfs/${v0}/p*`, paths), paths);
  assert.deepEqual(await denied(`//${twice(v0)}\n!/ipfs/${v0}\n`, [`/ipfs/${v0}`]), []);
  assert.deepEqual(await denied(`/ipfs/${v0}\n!//${twice(v0)}\n`, [`/ipfs/${v0}`]), []);
  const both = await lists({ "b.deny": `!/ipfs/${v0}`, "a.deny": `/ipfs/${v0}\n/ipfs/${other}`, "c.txt": "junk" });
  assert.equal(both.answerTo(`/ipfs/${v0}`), "served");
  assert.equal(both.answerTo(`/ipfs/${other}`), blocked);
});

test("hints of the header hold for all items that have none of their own", async () => {
  const text = `version: 1
name: a list
hints:
  gateway_status: 451
---
# a comment

/ipfs/${v0}
/ipfs/${other} reason:spam gateway_status:410
`;
  const { answerTo, warned } = await lists({ "a.deny": text });
  assert.deepEqual(warned, []);
  assert.equal(answerTo(`/ipfs/${v0}`), "CONTENT_BLOCKED_LEGALLY");
  assert.equal(answerTo(`/ipfs/${other}`), blocked);
});

test("lines that are no items are told of and passed over; a header that is broken takes the list with it", async () => {
  const text = `x: 1\r\n---\r\n/ipfs/nonsense\r\n/mime/x\r\n//zz0\r\n//${base58btc.baseEncode(
    createDigest(0x1100, new Uint8Array(64)).bytes,
  )}\r\n/ipfs/${v0}\r\n`;
  const { answerTo, warned } = await lists({
    "a.deny": text,
    "b.deny": `hints: [\n---\n/ipfs/${other}\n`,
    "c.deny": `version: 2\n---\n/ipfs/${other}\n`,
    "d.deny": `${"x".repeat(2 * 1024 * 1024)}\n/ipfs/${key}`,
  });
  assert.equal(answerTo(`/ipfs/${v0}`), blocked);
  assert.equal(answerTo(`/ipfs/${other}`), "served");
  assert.equal(answerTo(`/ipfs/${key}`), blocked);
  assert.deepEqual(
    warned.map((sentence) => sentence.split(":", 1)[0]),
    [
      "F/a.deny, line 3 is passed over",
      "F/a.deny, line 4 is passed over",
      "F/a.deny, line 5 is passed over",
      "F/a.deny, line 6 is passed over",
      "The denylist F/b.deny is not taken, nothing of it is in force",
      "The denylist F/c.deny is not taken, nothing of it is in force",
      "F/d.deny, line 1 is passed over",
    ],
  );
});

test("what is wrong in a header is told as in a config file: the line, the column, and the same words", async () => {
  const { warned } = await lists({ "a.deny": `version: 1\nversion: 1\n---\n/ipfs/${v0}\n` });
  assert.match(warned.join(), /: its header is no YAML: line 2, column 1: Map keys must be unique$/);
});

test("of very many lines that are no items a few are told of, and how many more there are", async () => {
  const { warned, answerTo } = await lists({ "a.deny": `${"junk\n".repeat(3000)}/ipfs/${v0}` });
  assert.equal(warned.length, 21);
  assert.equal(warned.at(-1), "F/a.deny: 2980 more lines are passed over");
  assert.equal(answerTo(`/ipfs/${v0}`), blocked);
});

test("lists that change are read again, those that break stay as they were, and without any nothing is denied", async () => {
  const { made, answerTo, put, remove, changes, warned } = await lists({});
  assert.deepEqual(changes, []);
  await put("a.deny", `/ipfs/${v0}\n`);
  await made.reread();
  await made.reread();
  assert.deepEqual(changes, [false]);
  await put("a.deny", `version: 9\n---\n`);
  await made.reread();
  assert.equal(answerTo(`/ipfs/${v0}`), blocked);
  assert.match(warned.join(), /what was in force of it stays so: its version 9 is not known here/);
  await remove("a.deny");
  await made.reread();
  assert.equal(answerTo(`/ipfs/${v0}`), "served");
  assert.equal(made.isEmpty, true);
});

test("lists are those of the machine, of the user and of the repo", () => {
  assert.deepEqual(denylistFolders("/repo", { XDG_CONFIG_HOME: "/own" }), [
    "/etc/ipfs/denylists",
    "/own/ipfs/denylists",
    "/repo/denylists",
  ]);
});
