/** `filestore`: blocks that refer to ranges of local files. */
import type { FilestoreObject, FilestoreStatus } from "modhost/node";
import {
  type AnyCall,
  type Argument,
  type Commands,
  defineGroup,
  type Options,
  readCommand,
  stream,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { refItem } from "./shapes.ts";

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
  { name: "obj", variadic: true, help: "CIDs of the blocks; by default all blocks." },
] as const satisfies readonly Argument[];

/** The status code of each outcome, with its name in text output. */
const statuses: Readonly<Record<FilestoreStatus, readonly [number: number, word: string]>> = {
  ok: [0, "ok"],
  fileError: [10, "error"],
  fileNotFound: [11, "no-file"],
  fileChanged: [12, "changed"],
  otherError: [20, "ERROR"],
  keyNotFound: [30, "missing"],
};

const words = new Map(Object.values(statuses));

async function* lines(objects: AsyncIterable<FilestoreObject>): AsyncGenerator<ListRes> {
  for await (const { status, errorMsg, key, filePath, offset, size } of objects) {
    const [Status] = statuses[status];
    yield { Status, ErrorMsg: errorMsg, Key: key ?? null, FilePath: filePath, Offset: offset, Size: size };
  }
}

function longText({ Key, FilePath, Offset, Size }: ListRes, call: Pick<AnyCall, "cidText">): string {
  if (Key === null) return "<corrupt key>";
  const key = call.cidText()(Key);
  return FilePath === "" ? key : `${key.padEnd(50)} ${String(Size).padStart(6)} ${FilePath} ${Offset}`;
}

function verifiedText(line: ListRes, call: Pick<AnyCall, "cidText">): string {
  const why = line.Status === statuses.otherError[0] ? `${line.ErrorMsg}\n` : "";
  return `${why}${(words.get(line.Status) ?? "???").padEnd(7)} ${longText(line, call)}\n`;
}

const verifying = {
  help: "Checks blocks against the files that hold their bytes.",
  needs: "Experimental.FilestoreEnabled",
  arguments: some,
  options: { "file-order": { type: "bool", help: "Check in the order of the backing files." } },
  returns: listed,
} as const;

export const commands = {
  filestore: defineGroup({
    help: "Inspect the filestore: blocks whose bytes are in files outside of the repo.",
    experimental: true,
  }),
  "filestore/dups": readCommand({
    help: "Lists filestore blocks that the block store also has.",
    needs: "Experimental.FilestoreEnabled",
    returns: stream(refItem),
    async *run({ node, signal, cidText }) {
      const write = cidText();
      for await (const cid of node.filestore.dups({ signal })) yield { Ref: write(cid), Err: "" };
    },
    text: ({ Ref }) => `${Ref}\n`,
  }),
  "filestore/ls": readCommand({
    help: "Lists blocks and the files that hold their bytes.",
    needs: "Experimental.FilestoreEnabled",
    arguments: some,
    options: { "file-order": { type: "bool", help: "Sort by the path of the backing file." } },
    returns: listed,
    run: ({ node, arguments: { obj }, options, signal }) =>
      lines(node.filestore.ls(obj, { fileOrder: options["file-order"], signal })),
    text: (line, call) => `${line.ErrorMsg === "" ? longText(line, call) : line.ErrorMsg}\n`,
  }),
  "filestore/verify": readCommand({
    ...verifying,
    run: ({ node, arguments: { obj }, options, signal }) =>
      lines(node.filestore.verify(obj, { fileOrder: options["file-order"], signal })),
    text: verifiedText,
  }),
} satisfies Commands;

const verifyOptionsKubo043 = {
  ...verifying.options,
  "remove-bad-blocks": {
    type: "bool",
    help: "Forget blocks whose bytes have changed, including pinned ones, which `pin/verify` then reports.",
  },
} as const satisfies Options;

export const kubo043 = {
  "filestore/verify": writeCommand({
    ...verifying,
    options: verifyOptionsKubo043,
    run({ node, arguments: { obj }, options, signal }) {
      const { "file-order": fileOrder, "remove-bad-blocks": removeBad } = options;
      return lines(node.filestore.verify(obj, { fileOrder, removeBad, signal }));
    },
    text(line, call) {
      const shown = verifiedText(line, call);
      if (call.options["remove-bad-blocks"] !== true) return shown;
      return shown.replace(/\n$/, line.Status === statuses.ok[0] ? " keep\n" : " remove\n");
    },
  }),
} satisfies Commands;
