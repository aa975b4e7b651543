/**
 * `@helia/verified-fetch`: it asks for single blocks, and gives what the gateway answers by path.
 */
import assert from "node:assert/strict";
import { fixtures } from "#test/contract/gateway/replay.ts";
import { Asked } from "./asked.ts";
import { type GatewayLibraries, onlyFrom } from "./libraries.ts";

const { cids, keys } = fixtures;
const part = { range: "bytes=1000-3999" };

interface Question {
  /** Below a gateway. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The gateway has the fixtures. */
export async function* verifiedFetch(
  libraries: GatewayLibraries,
  url: string,
): AsyncGenerator<string, void, undefined> {
  const questions: readonly Question[] = [
    ...(await filesOf(url, `/ipfs/${cids.site}/`)),
    ...(await filesOf(url, `/ipfs/${cids.shard}/`)),
    { path: `/ipfs/${cids.site}/` },
    { path: `/ipfs/${cids.bigfile}`, headers: part },
    ...["helloV0", "bigfile", "mtime", "inline", "dagcbor", "dagjson", "json", "cbor"].map((name) => ({
      path: `/ipfs/${cids[name]}`,
    })),
    ...["one", "two", "four"].map((name) => ({ path: `/ipns/${keys[name]}` })),
  ];
  const byPath = await Promise.all(questions.map(({ path, headers = {} }) => told(fetch(url + path, { headers }))));

  const helia = await libraries.withHTTP(libraries.createHeliaLight(), onlyFrom(url)).start();
  const verified = await libraries.createVerifiedFetchWithHelia(helia);
  try {
    using asked = new Asked();
    for (const [at, { path, headers = {} }] of questions.entries()) {
      const got = await told(verified(path.replace(/^\/(ip[fn]s)\//, "$1://"), { headers }));
      assert.deepEqual(got, byPath[at], path);
    }
    const others = asked.lines.filter((line) => !/^GET (\/ipfs\/\w+\?format=raw|\/routing\/v1\/\S+)$/.test(line));
    assert.deepEqual(others, []);
    const blocks = asked.lines.filter((line) => line.endsWith("?format=raw"));
    assert.ok(blocks.length >= questions.length, `${blocks.length} blocks`);
    yield `${questions.length} paths, names among them, are answered as ${blocks.length} checked blocks have it`;
  } finally {
    await verified.stop();
    await helia.stop();
  }
}

/** What type bytes have is for each of them to say. */
async function told(asked: Promise<Response>) {
  const answer = await asked;
  return { status: answer.status, text: Buffer.from(await answer.arrayBuffer()).toString("latin1") };
}

/** The small files of a directory, by its listing. */
async function filesOf(url: string, path: string): Promise<Question[]> {
  const listed = await fetch(url + path, { headers: { accept: "application/json" } });
  const entries = (await listed.json()) as readonly { readonly name: string; readonly cid: string }[];
  return entries
    .filter(({ cid }) => cid.startsWith("bafk"))
    .map(({ name }) => ({ path: path + encodeURIComponent(name) }));
}
