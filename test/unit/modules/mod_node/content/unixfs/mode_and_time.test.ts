/** The CIDs are those of Kubo 0.43. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addSettings, type UnixfsAddOptions } from "#node/content/adder/settings.ts";
import { type AddEntry, addTree } from "#node/content/unixfs/add.ts";

type Given = Pick<AddEntry, "path" | "mode" | "mtime"> & { readonly kind?: AddEntry["kind"]; readonly text?: string };

async function* of(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

/** Returns the last CID. */
async function add(options: UnixfsAddOptions, ...given: readonly Given[]): Promise<string> {
  const entries = (async function* (): AsyncGenerator<AddEntry> {
    for (const { kind = "file", text = "", ...rest } of given) yield { ...rest, kind, body: of(Buffer.from(text)) };
  })();
  let last = "";
  for await (const { built } of addTree(entries, addSettings(options), () => undefined)) last = String(built?.cid);
  return last;
}

/** Bytes of xorshift32, as in the test vectors of the reference. */
function xorshift(size: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length: size }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 0xff;
  });
}

const at = (seconds: number, nanoseconds = 0) => ({ seconds, nanoseconds });
const aaa = { path: "a", text: "aaa" };
const tree: readonly Given[] = [
  { path: "d", kind: "directory" },
  { path: "d/a", text: "aaa" },
  { path: "d/e", kind: "directory" },
  { path: "d/e/b", text: "bbb" },
];

test("a file with a mode, a time or both has the CID of the reference", async () => {
  const both = { mode: 0o755, mtime: at(1_630_937_926) };
  const known: readonly (readonly [UnixfsAddOptions, string])[] = [
    [{ mode: 0o644 }, "QmQmwMTAULVuZd5kisVZ2xgsc81GVu3LvCJL25DrAEGoZg"],
    [{ mtime: at(1_630_937_926) }, "QmbtPK9WCdNxToEh32kvemitx3tEnhFSP1sS7Q4ca8aBhc"],
    [{ mtime: at(1_630_937_926, 123_456_789) }, "QmVryHZCoBDBx91bkhK6EGyvgr87Kcw5u2q9oYzyt2DTL5"],
    [{ mtime: at(-1) }, "QmRzpXJH4rcsSJrKC4AxcmjR21vwzyQuPKN3VFFnWEmAB9"],
    [{ mtime: at(253_402_300_799) }, "QmddabEQiJVtWpdvpZB2qB1EHsj3ZkK7Ezve42rdGZb2Ut"],
    [both, "QmZt3aE2SUyxtA95jikCjFfuHokVyKJWJYiCQtp3osbv8o"],
    [{ ...both, cidVersion: 1 }, "bafybeiflpnu664kmxccxoo2a52b75o7yuat3y2lzuygmcajp22w5re6kna"],
    [{ ...both, trickle: true }, "QmWnAzCDBL8WfLUqjWE3mt6cYpczxbMd35BCPZjziUDBaY"],
    [{ ...both, inline: true }, "bafyaafqkcqeaeeqdmfqwcgadhdwqgqqgbddmnwejay"],
  ];
  for (const [options, cid] of known) assert.equal(await add(options, aaa), cid);
  const usual = { mode: 0o644, mtime: at(1_630_937_926) };
  assert.equal(await add(usual, { path: "a" }), "QmNWCQbPk4JDFCJPdb2euDzNwCsr2Z25KR4QHCT5e2HFaY");
});

test("a file of several chunks has mode and time on its root only", async () => {
  const facts = { mode: 0o644, mtime: at(1_630_937_926) };
  const chunked = { path: "a", text: "abcdefg" };
  const pairs = { ...facts, chunker: "size-2" };
  assert.equal(await add(pairs, chunked), "QmVbLoST557BSWXwwKgQg8mD6bWgdTNKaBbmcoy9rJk2ef");
  const v1 = "bafybeig4rj5mydop7c42swvgw4korrk66dzg6ogodgofzrd2yvyrzvoc2a";
  assert.equal(await add({ ...pairs, cidVersion: 1 }, chunked), v1);
  const settings = addSettings(facts);
  const large = async function* (): AsyncGenerator<AddEntry> {
    yield { path: "a", kind: "file", body: of(xorshift(1_048_576, 43)) };
  };
  let root = "";
  for await (const { built } of addTree(large(), settings, () => undefined)) root = String(built?.cid);
  assert.equal(root, "QmfDjZWPPszv3aYCDaBt6iDDTtgUTpWDTAJ4GrT6F5C9dS");
});

test("directories and the wrapper get mode and time, and a symlink gets the time", async () => {
  const options = { mode: 0o700, mtime: at(1_500_000_000) };
  assert.equal(await add(options, ...tree), "QmeQHALtvUvd45zHA71DMw9C3nucy1iAM9fRVg2NEF4oz5");
  const implied = tree.filter(({ kind }) => kind !== "directory");
  assert.equal(await add(options, ...implied), "QmeQHALtvUvd45zHA71DMw9C3nucy1iAM9fRVg2NEF4oz5");
  const wrapped = await add({ mode: 0o444, mtime: at(1), wrap: true }, { path: "a", text: "abcde" });
  assert.equal(wrapped, "QmZEjS81qFUsTfxbtgN4gzVEbCN6mVMYvgMVNupYovdz5H");
  const link = await add({ mode: 0o444, mtime: at(7) }, { path: "l", kind: "symlink", text: "a" });
  assert.equal(link, "QmeEteFPJVcsq3vTEjMF7NqZomHEAmL6qiTQ7P1GzsqWLa");
});

test("entries keep their own mode and time on request, and values for all entries take precedence", async () => {
  const entries: readonly Given[] = [
    { path: "d", kind: "directory", mode: 0o755, mtime: at(1_600_000_000) },
    { path: "d/a", text: "aaa", mode: 0o600, mtime: at(1_600_000_001, 7) },
    { path: "d/l", kind: "symlink", text: "a", mode: 0o777, mtime: at(0) },
    { path: "d/p", text: "plain" },
  ];
  assert.equal(await add({}, ...entries), "QmNpSAYLtaJvY31cknpzZEnDxAE8oTY894Hh7Cp1iSRxKJ");
  assert.equal(await add({ preserveMode: true }, ...entries), "QmSEi4pYvEr6sGHXYMubY3sqa4T8HYFXqHo5TLFFt4RUzC");
  assert.equal(await add({ preserveMtime: true }, ...entries), "QmWPWeCf4AnCY9tAPQwDo4CkQnXL7Atu5feeSzb5taUK7y");
  const both = { preserveMode: true, preserveMtime: true };
  assert.equal(await add(both, ...entries), "QmPgjtQtZpzTCuavLnbzCU2h79VUV6YoR7iQxeprLM3dnH");
  const said = { mode: 0o644, mtime: at(1_630_937_926) };
  const own = { ...aaa, mode: 0o600, mtime: at(5) };
  assert.equal(await add({ ...said, ...both }, own), await add(said, aaa));
});

test("raw leaves are switched off with mode or time, and rejected if requested", () => {
  const refused = /raw-leaves can't be used with UnixFS metadata/;
  assert.throws(() => addSettings({ mode: 0o644, rawLeaves: true }), refused);
  assert.throws(() => addSettings({ preserveMtime: true, nocopy: true }), refused);
  assert.equal(addSettings({ mtime: at(1), cidVersion: 1 }).rawLeaves, false);
});

test("empty directories are left out on request, but not those that become empty by that", async () => {
  const nested = [
    { path: "d", kind: "directory" },
    { path: "d/e", kind: "directory" },
    { path: "d/e/f", kind: "directory" },
  ] as const;
  assert.equal(await add({ emptyDirs: false }, ...nested), "QmP5RSLZAjVUM3CeMgACiNZM4mbr79h8vTUa9DWKUvjW1P");
  const one = { path: "d/a", text: "1" };
  const withOuter = "QmWFu3BvSmHPueWKnpqxZtLkgYd9QPYsHCVcMkUi2vyppi";
  assert.equal(await add({ emptyDirs: false }, nested[0], nested[1], one), withOuter);
  assert.equal(await add({}, nested[0], nested[1], one), "QmeGbwvojkWNNFg5uRH6eBDeBT4D3EY2XAPqrSh97UjcyZ");
  assert.equal(await add({ emptyDirs: false }, nested[0]), "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
});

test("an interior node has at most the given number of links", async () => {
  const letters = { path: "a", text: "abcdefghij" };
  const single = { chunker: "size-1" };
  assert.equal(await add({ ...single, maxFileLinks: 3 }, letters), "QmbshAHNk3in5w4vVmCsdQFbKZid8aruWadEyoLjnSjbPi");
  const two = { ...single, maxFileLinks: 2, trickle: true };
  assert.equal(await add(two, letters), "QmdouYrtyrFVvZZfXnSzd4x9ShMhMxgdxQXykj3mXzCxqB");
  assert.equal(await add({ ...single, maxFileLinks: 0 }, letters), "Qmf5MADxUeWJT2HKM7Myqb3hcGFYAo5x5XtmjeNmwbXMjU");
  assert.throws(() => addSettings({ maxFileLinks: 1 }), /at least 2/);
});
