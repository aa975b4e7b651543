/** Work on content and pins, and garbage collections. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CarWriter } from "@ipld/car";
import { encode as encodeCbor } from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { digest, pin, pinsAmong } from "#test/endurance/crash/items.ts";
import type { StoredContent } from "#test/endurance/crash/model.ts";
import { type CrashWorks, pick, type Weighted } from "#test/endurance/crash/works.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";
import { packed } from "#test/support/tar.ts";

const raw = 0x55;
const dagCbor = 0x71;
const sha256 = 0x12;
/** The block of an empty directory, which always exists. */
const emptyFolder = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** Returns random bytes, mostly few. */
export const noise = (most: number): Buffer => randomBytes(Math.ceil(Math.random() ** 4 * most));

interface Made {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

function made(codec: number, bytes: Uint8Array): Made {
  return { cid: CID.createV1(codec, create(sha256, Buffer.from(digest(bytes), "hex"))), bytes };
}

/** Describes how to read a single block. */
const blockOf = (cid: CID): StoredContent => ({
  command: "block/get",
  digest: Buffer.from(cid.multihash.digest).toString("hex"),
});

/** Stores content that is pinned. */
async function keep(
  { model }: CrashWorks,
  cid: string,
  content: StoredContent,
  run: () => Promise<boolean>,
): Promise<void> {
  if (!model.isFree(pin(cid))) return;
  model.contents.set(cid, content);
  await model.change({ [pin(cid)]: "recursive" }, run);
}

/** Stores content that is not pinned. */
async function leave(
  { model }: CrashWorks,
  run: () => Promise<readonly [CID, StoredContent] | undefined>,
): Promise<void> {
  await model.storing(async () => {
    const [cid, content] = (await run()) ?? [];
    if (cid === undefined || content === undefined) return undefined;
    model.contents.set(cid.toString(), content);
    return cid.toString();
  });
}

const hashIn = (text: string): string => (JSON.parse(text) as { readonly Hash: string }).Hash;

async function add(works: CrashWorks, server: RpcServer): Promise<void> {
  const content = noise(1_000_000);
  const parts = { file: content };
  const hashed = await works.ask(server, "add", { "only-hash": "true" }, { parts });
  if (hashed === undefined) return;
  const cid = hashIn(hashed);
  await keep(works, cid, { command: "cat", digest: digest(content) }, () =>
    works.does(server, "add", {}, { parts, text: cid }),
  );
}

/** Adds a reference to a file outside of the repo. */
async function addReference(works: CrashWorks, server: RpcServer): Promise<void> {
  const content = noise(600_000);
  const query = { "raw-leaves": "true", "only-hash": "true" };
  const hashed = await works.ask(server, "add", query, { parts: { file: content } });
  if (hashed === undefined) return;
  const cid = hashIn(hashed);
  const path = join(works.folder, `backing-${digest(content)}`);
  await writeFile(path, content);
  const head = `--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\nAbspath: ${path}\r\n\r\n`;
  await keep(works, cid, { command: "cat", digest: digest(content) }, async () => {
    const response = await fetch(`${server.url}/api/v0/add?nocopy=true`, {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=b" },
      body: Buffer.concat([Buffer.from(head), content, Buffer.from("\r\n--b--\r\n")]),
    });
    return (await works.judge("add (nocopy)", response, { text: cid })) !== undefined;
  });
}

export async function unpin(works: CrashWorks, server: RpcServer): Promise<void> {
  const { model } = works;
  const cid = pick(pinsAmong(model).filter((cid) => model.contents.has(cid) && model.isFree(pin(cid))));
  if (cid === undefined) return;
  await model.storing(async () => {
    await model.change({ [pin(cid)]: undefined }, () => works.does(server, "pin/rm", { arg: cid }));
    return model.isSteady(pin(cid)) ? cid : undefined;
  });
}

/** Content without a pin may be collected at any moment. */
async function repin(works: CrashWorks, server: RpcServer): Promise<void> {
  const { model } = works;
  const cid = pick(model.loose().filter((cid) => model.isFree(pin(cid)) && model.get(pin(cid)) === undefined));
  if (cid === undefined) return;
  await model.change({ [pin(cid)]: "recursive" }, () =>
    works.does(server, "pin/add", { arg: cid, timeout: "5s" }, { mayFail: true }),
  );
}

const collect = (works: CrashWorks, server: RpcServer): Promise<void> =>
  works.model.collecting(async () => {
    await works.ask(server, "repo/gc", {});
  });

async function putBlock(works: CrashWorks, server: RpcServer): Promise<void> {
  const { cid, bytes } = made(raw, noise(20_000));
  await leave(works, async () => {
    const parts = { data: bytes };
    const stored = await works.does(server, "block/put", { format: "raw" }, { parts, text: `${cid}` });
    return stored ? [cid, blockOf(cid)] : undefined;
  });
}

async function putNode(works: CrashWorks, server: RpcServer): Promise<void> {
  const { cid, bytes } = made(dagCbor, encodeCbor({ some: noise(2000) }));
  await keep(works, cid.toString(), blockOf(cid), () => {
    const query = { format: "cbor", "input-enc": "raw", pin: "true" };
    return works.does(server, "dag/put", query, { parts: { data: bytes }, text: `${cid}` });
  });
}

async function importArchive(works: CrashWorks, server: RpcServer): Promise<void> {
  const leaves = Array.from({ length: Math.ceil(Math.random() * 40) }, () =>
    made(raw, Buffer.concat([randomBytes(8), noise(20_000)])),
  );
  const root = made(dagCbor, encodeCbor(leaves.map(({ cid }) => cid)));
  const { writer, out } = CarWriter.create([root.cid]);
  const written = Array.fromAsync(out);
  for (const block of [root, ...leaves]) await writer.put(block);
  await writer.close();
  const archive = Buffer.concat(await written);
  // An export of this DAG must have the same bytes as the imported archive, because exports write
  // parents before children and follow links in their order.
  await keep(works, root.cid.toString(), { command: "dag/export", digest: digest(archive) }, () =>
    works.does(server, "dag/import", {}, { parts: { data: archive }, text: '"PinErrorMsg":""' }),
  );
}

/** Adds a link to an object. The result is not pinned. */
function patching(works: CrashWorks): (server: RpcServer) => Promise<void> {
  let root = emptyFolder;
  return (server) =>
    leave(works, async () => {
      const child = pick(pinsAmong(works.model)) ?? emptyFolder;
      const query = [
        ["arg", root],
        ["arg", `link-${Math.floor(Math.random() * 20)}`],
        ["arg", child],
      ] as const;
      // Both may have been collected.
      const text = await works.ask(server, "object/patch/add-link", query, { mayFail: true });
      root = text === undefined ? emptyFolder : hashIn(text);
      return text === undefined ? undefined : [CID.parse(root), blockOf(CID.parse(root))];
    });
}

async function addTar(works: CrashWorks, server: RpcServer): Promise<void> {
  const body = noise(100_000).toString("hex");
  const archive = await packed([
    { name: "folder/", type: "directory" },
    { name: "folder/file", body },
  ]);
  await leave(works, async () => {
    const text = await works.ask(server, "tar/add", {}, { parts: { file: archive } });
    if (text === undefined) return undefined;
    const content = { command: "cat", below: "/-folder/-file/data", digest: digest(Buffer.from(body)) };
    return [CID.parse(hashIn(text)), content];
  });
}

export const storageWorks = (works: CrashWorks): Weighted => [
  [14, (server) => add(works, server)],
  [6, (server) => addReference(works, server)],
  [6, (server) => unpin(works, server)],
  [5, (server) => repin(works, server)],
  [2, (server) => collect(works, server)],
  [4, (server) => putBlock(works, server)],
  [6, (server) => putNode(works, server)],
  [6, (server) => importArchive(works, server)],
  [6, patching(works)],
  [4, (server) => addTar(works, server)],
];
