/**
 * `@helia/verified-fetch`: requests single blocks and returns the same content as the gateway by
 * path.
 */
import assert from "node:assert/strict";
import { fixtures } from "#test/contract/gateway/replay.ts";
import { FetchRecorder } from "./fetch_recorder.ts";
import { type GatewayLibraries, onlyFrom } from "./libraries.ts";

const { cids, keys } = fixtures;
const part = { range: "bytes=1000-3999" };

interface Question {
  /** Path below the gateway. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Uses the fixtures, which the gateway has. */
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
  const byPath = await Promise.all(
    questions.map(({ path, headers = {} }) => contentOf(fetch(url + path, { headers }))),
  );

  const helia = await libraries.withHTTP(libraries.createHeliaLight(), onlyFrom(url)).start();
  const verified = await libraries.createVerifiedFetchWithHelia(helia);
  try {
    using recorder = new FetchRecorder();
    for (const [at, { path, headers = {} }] of questions.entries()) {
      const got = await contentOf(verified(path.replace(/^\/(ip[fn]s)\//, "$1://"), { headers }));
      assert.deepEqual(got, byPath[at], path);
    }
    const others = recorder.lines.filter((line) => !/^GET (\/ipfs\/\w+\?format=raw|\/routing\/v1\/\S+)$/.test(line));
    assert.deepEqual(others, []);
    const blocks = recorder.lines.filter((line) => line.endsWith("?format=raw"));
    assert.ok(blocks.length >= questions.length, `${blocks.length} blocks`);
    yield `${questions.length} paths, including names, have the content of ${blocks.length} verified blocks`;
  } finally {
    await verified.stop();
    await helia.stop();
  }
}

/**
 * Returns status and body. Types are not compared, because client and gateway may choose different
 * ones.
 */
async function contentOf(pending: Promise<Response>) {
  const response = await pending;
  return { status: response.status, text: Buffer.from(await response.arrayBuffer()).toString("latin1") };
}

/** Returns the small files of a directory from its listing. */
async function filesOf(url: string, path: string): Promise<Question[]> {
  const listed = await fetch(url + path, { headers: { accept: "application/json" } });
  const entries = (await listed.json()) as readonly { readonly name: string; readonly cid: string }[];
  return entries
    .filter(({ cid }) => cid.startsWith("bafk"))
    .map(({ name }) => ({ path: path + encodeURIComponent(name) }));
}
