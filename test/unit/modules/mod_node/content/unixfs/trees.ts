/** Trees of files in memory, for tests of code that reads them. */
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "#node/content/dag/reader.ts";
import { type AddEntry, type AddSettings, addTree } from "#node/content/unixfs/add.ts";
import { defaultCid } from "#node/content/unixfs/build.ts";
import { parseChunker } from "#node/formats/unixfs/chunker/parse.ts";
import { failure } from "#node/util/errors.ts";

export class Trees {
  readonly blocks = new Map<string, Uint8Array>();
  /** CIDs in the order of the requests. */
  readonly requested: string[] = [];

  readonly read: ReadBlock = async (cid) => {
    this.requested.push(cid.toString());
    const bytes = this.blocks.get(cid.toString());
    if (bytes === undefined) throw failure("NODE_NOT_FOUND");
    return bytes;
  };

  /** Adds files by path. Returns the CIDs by name. */
  async add(
    files: Readonly<Record<string, Uint8Array | string>>,
    settings: Partial<Omit<AddSettings, "chunker">> & { readonly chunker?: string } = {},
  ): Promise<ReadonlyMap<string, CID>> {
    const { chunker = "size-1000", ...rest } = settings;
    const whole: AddSettings = {
      ...defaultCid,
      rawLeaves: false,
      trickle: false,
      sharded: false,
      wrap: false,
      progress: false,
      ...rest,
      chunker: parseChunker(chunker),
    };
    const found = new Map<string, CID>();
    const events = addTree(entriesOf(files), whole, ({ cid, bytes }) => {
      this.blocks.set(cid.toString(), bytes);
      return undefined;
    });
    for await (const { name, built } of events) if (built !== undefined) found.set(name, built.cid);
    return found;
  }
}

async function* entriesOf(files: Readonly<Record<string, Uint8Array | string>>): AsyncGenerator<AddEntry> {
  for (const [path, content] of Object.entries(files)) {
    yield { path, kind: "file", body: pieces(Buffer.from(content)) };
  }
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 700) yield bytes.subarray(at, at + 700);
}
