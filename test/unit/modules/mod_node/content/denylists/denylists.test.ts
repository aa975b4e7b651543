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

/** Opens the lists of these files. Their order is that of their names. */
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
  /** Returns "served", or the code of the failure. */
  const resultOf = (path: string): string => {
    const [, space = "", name = "", ...segments] = path.split("/");
    try {
      made.requirePath(space as "ipfs", name, segments);
      return "served";
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  return { made, warned, changes, resultOf, put, remove: (name: string) => unlink(join(folder, name)) };
}

const blocked = "CONTENT_BLOCKED";

/** Returns the paths that one list denies. */
async function denied(text: string, paths: readonly string[]): Promise<string[]> {
  const { resultOf, warned } = await lists({ "a.deny": text });
  assert.deepEqual(warned, []);
  return paths.filter((path) => resultOf(path) === blocked);
}

test("a CID denies its multihash, whatever its version and codec", async () => {
  const { made } = await lists({ "a.deny": `/ipfs/${v0}\n` });
  assert.equal(made.denies(parseCid(v1)), true);
  assert.equal(made.denies(parseCid(other)), false);
  assert.throws(() => made.requireBlock(parseCid(v1)), { message: `${v1} is blocked and cannot be provided` });
  assert.throws(() => made.requirePath("ipfs", v1), { message: `/ipfs/${v1} is blocked and cannot be provided` });
});

test("a path denies itself, and with a star all paths that begin with it", async () => {
  const paths = ["", "/a", "/a/", "/ab", "/a/b", "/b"].map((path) => `/ipfs/${v1}${path}`);
  const ends = (found: readonly string[]) => found.map((path) => path.slice(`/ipfs/${v1}`.length));
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/a/`, paths)), ["/a", "/a/"]);
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/a*`, paths)), ["/a", "/a/", "/ab", "/a/b"]);
  assert.deepEqual(ends(await denied(`/ipfs/${v0}/*`, paths)), ["", "/a", "/a/", "/ab", "/a/b", "/b"]);
  assert.deepEqual(await denied(`/ipfs/${v0}/a%20b%2A`, [`/ipfs/${v0}/a b*`]), [`/ipfs/${v0}/a b*`]);
});

test("a name denies a key in any form, and a domain in upper and lower case", async () => {
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

test("double hashes may be in base58, or in the older hexadecimal form", async () => {
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
  // The example of the specification.
  const example = "//QmX9dhRcQcKUw3Ws8485T5a9dtjrSCQaUAHnG4iK9i4ceM";
  const path = "/ipfs/bafybeidjwik6im54nrpfg7osdvmx7zojl5oaxqel5cmsz46iuelwf5acja";
  assert.deepEqual(await denied(example, [path]), [path]);
});

test("the last matching item decides, within a list and among lists", async () => {
  const paths = ["photo", "photo1", "photo2"].map((path) => `/ipfs/${v0}/${path}`);
  assert.deepEqual(await denied(`/ipfs/${v0}/p*\n!/ipfs/${v0}/photo1`, paths), [paths[0], paths[2]]);
  assert.deepEqual(await denied(`!/ipfs/${v0}/photo1\n/ipfs/${v0}/p*`, paths), paths);
  assert.deepEqual(await denied(`//${twice(v0)}\n!/ipfs/${v0}\n`, [`/ipfs/${v0}`]), []);
  assert.deepEqual(await denied(`/ipfs/${v0}\n!//${twice(v0)}\n`, [`/ipfs/${v0}`]), []);
  const both = await lists({ "b.deny": `!/ipfs/${v0}`, "a.deny": `/ipfs/${v0}\n/ipfs/${other}`, "c.txt": "junk" });
  assert.equal(both.resultOf(`/ipfs/${v0}`), "served");
  assert.equal(both.resultOf(`/ipfs/${other}`), blocked);
});

test("hints of the header apply to all items without hints of their own", async () => {
  const text = `version: 1
name: a list
hints:
  gateway_status: 451
---
# a comment

/ipfs/${v0}
/ipfs/${other} reason:spam gateway_status:410
`;
  const { resultOf, warned } = await lists({ "a.deny": text });
  assert.deepEqual(warned, []);
  assert.equal(resultOf(`/ipfs/${v0}`), "CONTENT_BLOCKED_LEGALLY");
  assert.equal(resultOf(`/ipfs/${other}`), blocked);
});

test("invalid lines are reported and skipped, and a list with an invalid header is rejected", async () => {
  const text = `x: 1\r\n---\r\n/ipfs/nonsense\r\n/mime/x\r\n//zz0\r\n//${base58btc.baseEncode(
    createDigest(0x1100, new Uint8Array(64)).bytes,
  )}\r\n/ipfs/${v0}\r\n`;
  const { resultOf, warned } = await lists({
    "a.deny": text,
    "b.deny": `hints: [\n---\n/ipfs/${other}\n`,
    "c.deny": `version: 2\n---\n/ipfs/${other}\n`,
    "d.deny": `${"x".repeat(2 * 1024 * 1024)}\n/ipfs/${key}`,
  });
  assert.equal(resultOf(`/ipfs/${v0}`), blocked);
  assert.equal(resultOf(`/ipfs/${other}`), "served");
  assert.equal(resultOf(`/ipfs/${key}`), blocked);
  assert.deepEqual(
    warned.map((sentence) => sentence.split(":", 1)[0]),
    [
      "Skipping line 3 of F/a.deny",
      "Skipping line 4 of F/a.deny",
      "Skipping line 5 of F/a.deny",
      "Skipping line 6 of F/a.deny",
      "Cannot read the denylist F/b.deny, so it has no effect",
      "Cannot read the denylist F/c.deny, so it has no effect",
      "Skipping line 1 of F/d.deny",
    ],
  );
});

test("an error in a header is reported with line and column, as in a config file", async () => {
  const { warned } = await lists({ "a.deny": `version: 1\nversion: 1\n---\n/ipfs/${v0}\n` });
  assert.match(warned.join(), /: its header is no YAML: line 2, column 1: Map keys must be unique$/);
});

test("only the first of many invalid lines are reported one by one, and the rest by their number", async () => {
  const { warned, resultOf } = await lists({ "a.deny": `${"junk\n".repeat(3000)}/ipfs/${v0}` });
  assert.equal(warned.length, 21);
  assert.equal(warned.at(-1), "Skipping 2980 more lines of F/a.deny");
  assert.equal(resultOf(`/ipfs/${v0}`), blocked);
});

test("lists are read again after a change, invalid versions are ignored, and a removed list denies nothing", async () => {
  const { made, resultOf, put, remove, changes, warned } = await lists({});
  assert.deepEqual(changes, []);
  await put("a.deny", `/ipfs/${v0}\n`);
  await made.reread();
  await made.reread();
  assert.deepEqual(changes, [false]);
  await put("a.deny", `version: 9\n---\n`);
  await made.reread();
  assert.equal(resultOf(`/ipfs/${v0}`), blocked);
  assert.match(warned.join(), /so its previous version stays in force: its version 9 is not known here/);
  await remove("a.deny");
  await made.reread();
  assert.equal(resultOf(`/ipfs/${v0}`), "served");
  assert.equal(made.isEmpty, true);
});

test("lists come from the folders of the machine, of the user and of the repo", () => {
  assert.deepEqual(denylistFolders("/repo", { XDG_CONFIG_HOME: "/own" }), [
    "/etc/ipfs/denylists",
    "/own/ipfs/denylists",
    "/repo/denylists",
  ]);
});
