/** Blocks that stand for ranges of files and of URLs. */
import type { CID } from "multiformats/cid";
import { addEntries } from "../../mod_node/content/adder/adder.ts";
import { addSettings } from "../../mod_node/content/adder/settings.ts";
import type { AddEntry } from "../../mod_node/content/unixfs/add.ts";
import { parseCid } from "../../mod_node/formats/cid/text.ts";
import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import type { Filestore, Inspected } from "../../mod_node/storage/filestore/filestore.ts";
import { discard, requestUrl } from "../../mod_node/storage/filestore/http_content.ts";
import { isUrl, statuses } from "../../mod_node/storage/filestore/reference.ts";
import { failure, NodeError } from "../../mod_node/util/errors.ts";
import {
  type AnyCall,
  type Argument,
  type Commands,
  defineCommand,
  defineGroup,
  stream,
  value,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { blockStat, refItem } from "./shapes.ts";

const listRes = fields("ListRes", {
  Status: "int32",
  ErrorMsg: "string",
  Key: nullable("link"),
  FilePath: "string",
  Offset: "uint64",
  Size: "uint64",
});
type ListRes = ValueOf<typeof listRes>;
const listed = stream(listRes);

const some = [
  { name: "obj", variadic: true, help: "CIDs of the blocks; by default all. These are checked, too." },
] as const satisfies readonly Argument[];

function openFilestore({ filestore }: Node): Filestore {
  if (filestore === undefined) throw failure("FILESTORE_OFF");
  return filestore;
}

const lineOf = ({ cid, status, message, reference }: Inspected): ListRes => ({
  Status: status,
  ErrorMsg: message,
  Key: cid ?? null,
  FilePath: reference?.path ?? "",
  Offset: reference?.offset ?? 0,
  Size: reference?.size ?? 0,
});

async function inspected(filestore: Filestore, text: string): Promise<Inspected> {
  let cid: CID;
  try {
    cid = parseCid(text);
  } catch (error) {
    return { cid: undefined, status: statuses.otherError, message: `${text}: ${(error as Error).message}` };
  }
  return filestore.inspect(cid);
}

/** Those that were asked for, or else all. */
async function* lines(
  { filestore, asked, signal }: { filestore: Filestore; asked: readonly string[]; signal: AbortSignal },
  all: AsyncIterable<Inspected>,
): AsyncGenerator<ListRes> {
  for (const text of asked) {
    signal.throwIfAborted();
    yield lineOf(await inspected(filestore, text));
  }
  if (asked.length > 0) return;
  for await (const block of all) {
    signal.throwIfAborted();
    yield lineOf(block);
  }
}

async function* unlooked(blocks: ReturnType<Filestore["list"]>): AsyncGenerator<Inspected> {
  for await (const block of blocks) yield { ...block, status: statuses.ok, message: "" };
}

/** As text says them, in a column of seven. */
const words: Readonly<Record<number, string>> = {
  [statuses.ok]: "ok",
  [statuses.fileError]: "error",
  [statuses.fileNotFound]: "no-file",
  [statuses.fileChanged]: "changed",
  [statuses.otherError]: "ERROR",
  [statuses.keyNotFound]: "missing",
};

function longText({ Key, FilePath, Offset, Size }: ListRes, call: Pick<AnyCall, "cidText">): string {
  if (Key === null) return "<corrupt key>";
  const key = call.cidText()(Key);
  return FilePath === "" ? key : `${key.padEnd(50)} ${String(Size).padStart(6)} ${FilePath} ${Offset}`;
}

export const commands = {
  filestore: defineGroup({ help: "Look into the blocks whose bytes are kept in files outside.", experimental: true }),
  "filestore/dups": defineCommand({
    help: "Lists the blocks that the block store has, too.",
    needs: "Experimental.FilestoreEnabled",
    returns: stream(refItem),
    async *run(call) {
      const write = call.cidText();
      for await (const cid of openFilestore(call.lowLevel).duplicates()) {
        call.signal.throwIfAborted();
        yield { Ref: write(cid), Err: "" };
      }
    },
    text: ({ Ref }) => `${Ref}\n`,
  }),
  "filestore/ls": defineCommand({
    help: "Lists blocks and the files they stand in.",
    needs: "Experimental.FilestoreEnabled",
    arguments: some,
    options: { "file-order": { type: "bool", help: "Sort by path of the file." } },
    returns: listed,
    run({ arguments: { obj: asked }, options, lowLevel: node, signal }) {
      const filestore = openFilestore(node);
      const all = unlooked(filestore.list({ byFile: options["file-order"] === true }));
      return lines({ filestore, asked, signal }, all);
    },
    text: (line, call) => `${line.ErrorMsg === "" ? longText(line, call) : line.ErrorMsg}\n`,
  }),
  "filestore/verify": defineCommand({
    help: "Checks blocks against the files they stand in.",
    needs: "Experimental.FilestoreEnabled",
    arguments: some,
    options: { "file-order": { type: "bool", help: "Check in the order of the files." } },
    returns: listed,
    run({ arguments: { obj: asked }, options, lowLevel: node, signal }) {
      const filestore = openFilestore(node);
      return lines({ filestore, asked, signal }, filestore.verify({ byFile: options["file-order"] === true }));
    },
    text(line, call) {
      const why = line.Status === statuses.otherError ? `${line.ErrorMsg}\n` : "";
      return `${why}${(words[line.Status] ?? "???").padEnd(7)} ${longText(line, call)}\n`;
    },
  }),
  urlstore: defineGroup({ help: "Store what URLs lead to.", experimental: true }),
  "urlstore/add": defineCommand({
    help: "Adds what a URL leads to without keeping its bytes; they are fetched again when they are read.",
    needs: "Experimental.UrlstoreEnabled",
    arguments: [{ name: "url", required: true, help: "The URL." }],
    options: {
      trickle: { type: "bool", aliases: ["t"], help: "Use the trickle layout." },
      pin: { type: "bool", default: true, help: "Pin it." },
    },
    returns: value(blockStat),
    async run(call) {
      const { lowLevel: node, signal } = call;
      const { url } = call.arguments;
      const { trickle, pin } = call.options;
      const write = call.cidText();
      if (!isUrl(url)) throw new NodeError(`unsupported url syntax: ${url}`);
      if (node.filestore === undefined) throw failure("REFERENCES_OFF");
      if (!node.filestore.takesUrls) throw failure("URLSTORE_OFF");
      const content = await requestUrl(url, { signal });
      const { status, length = -1, body } = content;
      if (status < 200 || status > 299) {
        await discard(content);
        throw new NodeError(`got non-2XX status code ${status}: ${url}`);
      }
      const settings = addSettings({ cidVersion: 1, rawLeaves: true, nocopy: true, trickle });
      let root: CID | undefined;
      const entries = one({ path: "", kind: "file", body, backing: url });
      for await (const { built } of addEntries(node, entries, settings, { pin, references: true, signal })) {
        root = built?.cid;
      }
      if (root === undefined) throw new Error("an add has ended without its root");
      return { Key: write(root), Size: length };
    },
    text: ({ Key }) => `${Key}\n`,
  }),
} satisfies Commands;

async function* one(entry: AddEntry): AsyncGenerator<AddEntry> {
  yield entry;
}
