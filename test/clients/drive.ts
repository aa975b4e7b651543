/** Exercises a client library: the same calls for each library, with sizes to choose. */
import { createHash } from "node:crypto";
import { CID } from "multiformats/cid";
import { digestOf, keystream } from "#test/support/content.ts";

/** The part of both client libraries that is used here. */
export interface ClientLibrary {
  add(entry: unknown, options?: object): Promise<{ readonly cid: Named; readonly size: number | bigint }>;
  addAll(entries: unknown, options?: object): AsyncIterable<{ readonly path: string; readonly cid: Named }>;
  cat(cid: CID, options?: object): AsyncIterable<Uint8Array>;
  ls(cid: CID): AsyncIterable<{ readonly name: string; readonly cid: Named; readonly type: string }>;
  readonly pin: {
    ls(options?: object): AsyncIterable<{ readonly cid: Named; readonly type: string }>;
    add(cid: CID): Promise<Named>;
    rm(cid: CID): Promise<Named>;
  };
  readonly block: {
    put(bytes: Uint8Array, options?: object): Promise<Named>;
    get(cid: CID): Promise<Uint8Array>;
    stat(cid: CID): Promise<{ readonly size: number }>;
  };
  id(): Promise<{ readonly id: Named }>;
  version(): Promise<{ readonly version: string }>;
}

interface Named {
  toString(): string;
}

export interface DriveSizes {
  /** Size of the large file in bytes, and the CID that the reference computes. */
  readonly large: { readonly size: number; readonly cid: string };
  /** Number of folders with 100 files each, and the CID of the tree that the reference computes. */
  readonly tree: { readonly folders: number; readonly cid: string };
}

const own = (cid: Named) => CID.parse(cid.toString());

/** Throws at the first wrong result. Yields a line for each thing that was done. */
export async function* drive(
  client: ClientLibrary,
  { large, tree }: DriveSizes,
): AsyncGenerator<string, void, undefined> {
  yield `version ${(await client.version()).version}, peer ${(await client.id()).id}`;

  const file = own((await client.add({ path: "large", content: keystream(large.size, 1) }, { pin: true })).cid);
  equal("CID of the large file", file.toString(), large.cid);
  const read = createHash("sha256");
  let bytes = 0;
  for await (const piece of client.cat(file)) {
    read.update(piece);
    bytes += piece.length;
  }
  equal("bytes of the large file", bytes, large.size);
  equal("checksum of the large file", read.digest("hex"), digestOf(keystream(large.size, 1)));
  yield `${large.size} bytes added, read back, checksums equal: ${file}`;

  let root: CID | undefined;
  let events = 0;
  for await (const { path, cid } of client.addAll(treeEntries(tree.folders), { pin: true })) {
    events += 1;
    if (path === "tree") root = own(cid);
  }
  equal("CID of the tree", String(root), tree.cid);
  equal("lines of the tree", events, tree.folders * 101 + 1);
  let found = 0;
  for await (const folder of client.ls(root as CID)) {
    for await (const entry of client.ls(own(folder.cid))) {
      equal(`kind of ${entry.name}`, entry.type, "file");
      found += 1;
    }
  }
  equal("files listed", found, tree.folders * 100);
  yield `${found} files added and listed: ${root}`;

  const pins = new Map<string, string>();
  for await (const { cid, type } of client.pin.ls({ type: "recursive" })) pins.set(cid.toString(), type);
  for (const cid of [file, root as CID]) equal(`pin of ${cid}`, pins.get(cid.toString()), "recursive");
  await client.pin.rm(file);
  await client.pin.add(file);
  yield `${pins.size} recursive pins listed, one removed and restored`;

  const text = Buffer.from("a block of its own");
  const block = own(await client.block.put(text));
  equal("the block", Buffer.from(await client.block.get(block)).toString(), text.toString());
  equal("size of the block", (await client.block.stat(block)).size, text.length);
  yield `block stored and read: ${block}`;
}

async function* treeEntries(folders: number): AsyncGenerator<{ path: string; content: Uint8Array }> {
  for (let folder = 0; folder < folders; folder += 1) {
    for (let file = 0; file < 100; file += 1) {
      const content = Buffer.from(`file ${folder}/${file}\n`.repeat(file + 1));
      yield { path: `tree/d${folder}/f${file}`, content };
    }
  }
}

function equal(what: string, got: unknown, wanted: unknown): void {
  if (got !== wanted) throw new Error(`${what}: got ${got}, expected ${wanted}`);
}
