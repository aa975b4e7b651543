/**
 * Every command that reads fetches missing content. With `offline`, it fails with go-ipfs's
 * message.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Called, type RpcHost, startOnline } from "./support.ts";

/** Content that is unique to a call, so that nothing was fetched before. */
interface Content {
  /** A directory with the files `a` and `big`; `big` has several blocks. */
  readonly dir: string;
  /** A block without links. */
  readonly raw: string;
  /** `{"a":<link to {"b":…}>}`. */
  readonly cbor: string;
  /** An archive that `tar/add` stored. */
  readonly tar: string;
}

interface Read {
  /** The calls to make on both nodes, one after the other. */
  readonly calls: readonly ((content: Content) => string)[];
  readonly files?: Readonly<Record<string, string>>;
  /** Returns the part of a response that is the same on every node. */
  readonly same?: (reply: Called) => unknown;
  /** Status and text of the first call with `offline=true`, as in go-ipfs. */
  readonly offline?: readonly [status: number, text: string | RegExp];
}

const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const missing = [500, "merkledag: not found"] as const;
const noBlock = [500, "blockservice: key not found"] as const;
const noRef = [200, '{"Ref":"","Err":"merkledag: not found"}\n'] as const;

const reading = (call: (content: Content) => string, more: Partial<Read> = {}): Read => ({
  calls: [call],
  offline: missing,
  ...more,
});
/** Removes times, and the checksums over them. */
const withoutTimes = ({ text }: Called) => text.replaceAll(/[0-7]{11}\0[0-7]{6}\0 /g, "");

const reads: Readonly<Record<string, Read>> = {
  "block/get": reading(({ raw }) => `block/get?arg=${raw}`, { offline: noBlock }),
  "block/stat": reading(({ raw }) => `block/stat?arg=${raw}`, { offline: noBlock }),
  cat: reading(({ dir }) => `cat?arg=${dir}/big`),
  "cat of a part": reading(({ dir }) => `cat?arg=/ipfs/${dir}/big&offset=300000&length=10`),
  "dag/export": reading(({ dir }) => `dag/export?arg=${dir}&progress=false`, { offline: [200, /^8.eroots/s] }),
  "dag/get": reading(({ cbor }) => `dag/get?arg=${cbor}/a/b`),
  "dag/get of a file": reading(({ dir }) => `dag/get?arg=${dir}/big`),
  "dag/resolve": reading(({ cbor }) => `dag/resolve?arg=${cbor}/a/b`),
  "dag/stat": reading(({ dir }) => `dag/stat?arg=${dir}&progress=false`),
  "file/ls": reading(({ dir }) => `file/ls?arg=${dir}`),
  "files/cp, files/ls and files/read": {
    calls: [
      ({ dir }) => `files/cp?arg=/ipfs/${dir}&arg=/${dir}`,
      ({ dir }) => `files/ls?arg=/${dir}&long=true`,
      ({ dir }) => `files/stat?arg=/${dir}/big`,
      ({ dir }) => `files/read?arg=/${dir}/big`,
    ],
    offline: [500, /^cp: cannot get node from path \/ipfs\/\w+: merkledag: not found$/],
  },
  "files/stat": reading(({ dir }) => `files/stat?arg=/ipfs/${dir}/big`),
  get: reading(({ dir }) => `get?arg=${dir}`, { same: withoutTimes }),
  ls: reading(({ dir }) => `ls?arg=${dir}`),
  "ls, streamed": reading(({ dir }) => `ls?arg=${dir}&stream=true`),
  "name/publish": reading(({ dir }) => `name/publish?arg=/ipfs/${dir}/big&allow-offline=true`, {
    same: ({ lines }) => (lines as { Value: string }[]).map(({ Value }) => Value),
  }),
  "object/data": reading(({ dir }) => `object/data?arg=${dir}/big`),
  "object/diff": reading(({ dir }) => `object/diff?arg=${empty}&arg=${dir}`),
  "object/get": reading(({ dir }) => `object/get?arg=${dir}`),
  "object/links": reading(({ dir }) => `object/links?arg=${dir}/big`),
  "object/patch/add-link": reading(({ dir }) => `object/patch/add-link?arg=${dir}&arg=x&arg=${empty}`),
  "object/patch/append-data": reading(({ dir }) => `object/patch/append-data?arg=${dir}`, { files: { more: "more" } }),
  "object/patch/rm-link": reading(({ dir }) => `object/patch/rm-link?arg=${dir}&arg=a`),
  "object/patch/set-data": reading(({ dir }) => `object/patch/set-data?arg=${dir}`, { files: { data: "data" } }),
  "object/stat": reading(({ dir }) => `object/stat?arg=${dir}/big`),
  "pin/add": {
    calls: [
      ({ dir }) => `pin/add?arg=${dir}`,
      ({ dir }) => `pin/ls?arg=${dir}`,
      ({ dir }) => `cat?arg=${dir}/big&offline=true`,
    ],
    offline: [500, "pin: merkledag: not found"],
  },
  "pin/update": {
    calls: [({ dir }) => `pin/update?arg=${empty}&arg=${dir}&unpin=false`, ({ dir }) => `pin/ls?arg=${dir}`],
    // go-ipfs does not return this error: it keeps searching for the block.
    offline: [500, /^get \w+: merkledag: not found$/],
  },
  refs: reading(({ dir }) => `refs?arg=${dir}`, { offline: noRef }),
  "refs of all below": reading(({ dir }) => `refs?arg=${dir}&recursive=true`, { offline: noRef }),
  resolve: reading(({ dir }) => `resolve?arg=/ipfs/${dir}/big`),
  "tar/cat": reading(({ tar }) => `tar/cat?arg=${tar}`),
};

let a: RpcHost;
let b: RpcHost;

before(async () => {
  [a, b] = await Promise.all([startOnline(), startOnline()]);
  const { Addresses } = await a.value<{ Addresses: string[] }>("id");
  await b.value(`swarm/connect?arg=${Addresses[0]}`);
});
after(() => Promise.all([a, b].map((host) => host.stop())));

let made = 0;

async function fresh(): Promise<Content> {
  const text = `content ${made++} `;
  const files = { a: text, big: text.repeat(60_000) };
  const added = (await a.call("add?wrap-with-directory=true&progress=false&pin=false", files)).lines as {
    Hash: string;
  }[];
  const [block] = (await a.call("block/put", { block: `block ${text}` })).lines as [{ Key: string }];
  const put = async (node: unknown) => {
    const [{ Cid }] = (await a.call("dag/put", { node: JSON.stringify(node) })).lines as [{ Cid: { "/": string } }];
    return Cid;
  };
  const archive = (await a.call(`get?arg=${added[0]?.Hash}`)).text;
  const [tar] = (await a.call("tar/add", { archive })).lines as [{ Hash: string }];
  return {
    dir: added.at(-1)?.Hash as string,
    raw: block.Key,
    cbor: (await put({ a: await put({ b: text }) }))["/"],
    tar: tar.Hash,
  };
}

const sameText = ({ text }: Called): unknown => text;
/** Returns the error text, or the whole text of a successful response. */
const textOf = ({ status, text, lines }: Called) =>
  status === 200 ? text : ((lines[0] as { Message?: string })?.Message ?? text);

for (const [name, { calls, files, same = sameText, offline }] of Object.entries(reads)) {
  test(`${name}: returns what the node with the content returns, and with offline a missing block`, async () => {
    const content = await fresh();
    if (offline !== undefined) {
      const [status, words] = offline;
      const refused = await b.call(`${calls[0]?.(content)}&offline=true`, files);
      assert.equal(refused.status, status, refused.text);
      if (words instanceof RegExp) assert.match(textOf(refused), words);
      else assert.equal(textOf(refused), words);
    }
    for (const call of calls) {
      const theirs = await b.call(call(content), files);
      assert.equal(theirs.status, 200, theirs.text);
      assert.deepEqual(same(theirs), same(await a.call(call(content), files)));
    }
  });
}

test("with offline, no peer is queried", async () => {
  const received = async () => (await b.value<{ BlocksReceived: number }>("bitswap/stat")).BlocksReceived;
  const before = await received();
  const content = await fresh();
  for (const { calls, files } of Object.values(reads)) await b.call(`${calls[0]?.(content)}&offline=true`, files);
  assert.equal(await received(), before);
  assert.deepEqual((await b.value<{ Wantlist: unknown[] }>("bitswap/stat")).Wantlist, []);
});
