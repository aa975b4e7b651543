/** `multibase`: encodes and decodes multibase text. */
import { failure } from "modhost/node";
import { bytes, type Commands, defineGroup, type FileArgument, raw, readCommand } from "../rpc/command.ts";
import type { FileTree } from "../rpc/uploads.ts";
import { basesCommand } from "./cid.ts";

const base = {
  b: { type: "string", default: "base64url", since: "0.43", help: "The base to write in, by name or prefix." },
} as const;

const encoded = { name: "encoded_file", required: true, help: "Multibase text." } as const satisfies FileArgument;

async function bodyOf(files: FileTree): Promise<AsyncIterable<Uint8Array>> {
  try {
    return (await files.one()).body;
  } catch (error) {
    throw failure("INPUT_INVALID", { reason: `failed to access file: ${(error as Error).message}` }, error);
  }
}

export const commands = {
  multibase: defineGroup({ help: "Encode and decode multibase text.", since: "0.43" }),
  "multibase/encode": readCommand({
    help: "Encodes bytes as multibase text.",
    since: "0.43",
    file: { name: "file", required: true, help: "The bytes." },
    options: base,
    returns: raw,
    run: async ({ node, files, options: { b } }) => bytes(await node.multibase.encode(await bodyOf(files), b)),
  }),
  "multibase/decode": readCommand({
    help: "Reads multibase text.",
    since: "0.43",
    file: encoded,
    returns: raw,
    run: async ({ node, files }) => bytes(await node.multibase.decode(await bodyOf(files))),
  }),
  "multibase/transcode": readCommand({
    help: "Converts multibase text to another base.",
    since: "0.43",
    file: encoded,
    options: base,
    returns: raw,
    async run({ node, files, options: { b } }) {
      return bytes(await node.multibase.encode(await node.multibase.decode(await bodyOf(files)), b));
    },
  }),
  "multibase/list": basesCommand("Lists the multibase encodings.", { later: true, since: "0.43" }),
} satisfies Commands;
