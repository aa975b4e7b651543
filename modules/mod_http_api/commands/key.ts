/** `key`: the keys that sign names. */
import { type Key, printable } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type Argument,
  bytes,
  type Commands,
  defineGroup,
  type Option,
  raw,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import type { SinceLevel } from "../rpc/levels.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { lines, nameBase } from "./shapes.ts";

const keyOutput = fields("KeyOutput", { Name: "string", Id: "string" });
const keyList = fields("KeyOutputList", { Keys: [keyOutput] });
const keys = value(keyList);

const name = <N extends string>(name: N, help: string) => ({ name, required: true, help }) as const satisfies Argument;
const long: Option = { type: "bool", help: "Also print identifiers." };

const made = {
  type: {
    type: "string",
    aliases: ["t"],
    default: "ed25519",
    help: "Type of the key: `ed25519`, `rsa` or `secp256k1`.",
  },
  size: { type: "int", aliases: ["s"], unset: [-1], help: "Size of an RSA key, in bits." },
} as const satisfies Record<string, Option>;

const shown = ({ name, id }: Key) => ({ Name: name, Id: id });

function listText({ Keys }: ValueOf<typeof keyList>, ids: boolean): string {
  if (!ids) return lines(Keys.map(({ Name }) => printable(Name)));
  return columns(
    Keys.map(({ Name, Id }) => [Id, printable(Name), ""]),
    1,
  );
}

const listing = (dated: SinceLevel = {}) =>
  readCommand({
    ...dated,
    help: "Lists the keys.",
    options: { l: long, "ipns-base": nameBase },
    returns: keys,
    async run({ node, options: { "ipns-base": ipnsBase } }) {
      return { Keys: (await node.key.list({ ipnsBase })).map(shown) };
    },
    text: (listed, { options }) => listText(listed, options.l === true),
  });

const signer = (help: string) =>
  ({
    key: { type: "string", aliases: ["k"], default: "self", unset: [""], help },
    "ipns-base": nameBase,
  }) as const satisfies Record<string, Option>;

export const commands = {
  key: defineGroup({ help: "Manage the keys that sign names." }),
  "key/export": writeCommand({
    help: "Exports a key.",
    arguments: [name("name", "The key.")],
    options: {
      output: { type: "string", aliases: ["o"], help: "File to write to; has no effect on the response." },
      format: {
        type: "string",
        aliases: ["f"],
        default: "libp2p-protobuf-cleartext",
        since: "0.43",
        help: "Format of the file: `libp2p-protobuf-cleartext` or `pem-pkcs8-cleartext`.",
      },
    },
    returns: raw,
    async run({ node, arguments: { name }, options: { format } }) {
      const content = await node.key.export(name, { format });
      return bytes(content, { length: content.length });
    },
  }),
  "key/gen": writeCommand({
    help: "Creates a key.",
    arguments: [name("name", "Its name.")],
    options: { ...made, "ipns-base": nameBase },
    returns: value(keyOutput),
    async run({ node, arguments: { name }, options: { type, size, "ipns-base": ipnsBase }, level }) {
      return shown(await node.key.gen(name, { type, size, exact: level.keys === "0.43", ipnsBase }));
    },
    text: ({ Id }) => `${Id}\n`,
  }),
  "key/import": writeCommand({
    help: "Imports a key.",
    arguments: [name("name", "Name for the key.")],
    options: {
      "ipns-base": nameBase,
      format: {
        type: "string",
        aliases: ["f"],
        default: "libp2p-protobuf-cleartext",
        since: "0.43",
        help: "Format of the file: `libp2p-protobuf-cleartext`, as `key/export` writes it, or `pem-pkcs8-cleartext`.",
      },
      "allow-any-key-type": {
        type: "bool",
        since: "0.43",
        help: "Accept keys that are neither Ed25519, RSA nor secp256k1.",
      },
    },
    file: { name: "key", required: true, help: "The file, as `key/export` writes it." },
    returns: value(keyOutput),
    async run({ node, arguments: { name }, options, files, level }) {
      const { "ipns-base": ipnsBase, format } = options;
      // go-ipfs 0.9 does not read PEM, and accepts keys of every type.
      const anyType = options["allow-any-key-type"] ?? (level.keys === "0.9" && !format.startsWith("pem-"));
      return shown(await node.key.import(name, (await files.one()).body, { ipnsBase, format, anyType }));
    },
    text: ({ Id }) => `${Id}\n`,
  }),
  "key/list": listing(),
  "key/rename": writeCommand({
    help: "Renames a key.",
    arguments: [name("name", "Current name of the key."), name("newName", "New name of the key.")],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Replace an existing key of that name." },
      "ipns-base": nameBase,
    },
    returns: value(fields("KeyRenameOutput", { Was: "string", Now: "string", Id: "string", Overwrite: "bool" })),
    async run({ node, arguments: { name, newName }, options: { force, "ipns-base": ipnsBase } }) {
      const { was, now, id, overwrite } = await node.key.rename(name, newName, { force, ipnsBase });
      return { Was: was, Now: now, Id: id, Overwrite: overwrite };
    },
    text: ({ Now, Id, Overwrite }) => `Key ${Id} renamed to ${printable(Now)}${Overwrite ? " with overwriting" : ""}\n`,
  }),
  "key/rm": writeCommand({
    help: "Removes keys.",
    arguments: [{ name: "name", required: true, variadic: true, stdin: "first", help: "The keys." }],
    options: { l: long, "ipns-base": nameBase },
    returns: keys,
    async run({ node, arguments: { name: names }, options: { "ipns-base": ipnsBase } }) {
      const Keys: ValueOf<typeof keyOutput>[] = [];
      for (const each of names) Keys.push(shown(await node.key.rm(each, { ipnsBase })));
      return { Keys };
    },
    text: (listed, { options }) => listText(listed, options.l === true),
  }),
  "key/rotate": writeCommand({
    help: "Replaces the identity of the node at its next start, and stores the current identity as a key.",
    options: {
      oldkey: { type: "string", aliases: ["o"], help: "Name under which the current identity is stored." },
      ...made,
    },
    returns: raw,
    async run({ node, options: { oldkey, type, size } }) {
      await node.key.rotate({ oldkey, type, size });
      return bytes(new Uint8Array());
    },
  }),
  "key/ls": listing({ since: "0.43" }),
  "key/sign": writeCommand({
    help: "Signs data with a key.",
    since: "0.43",
    options: signer("The key, by name or identifier."),
    file: { name: "data", required: true, help: "The data." },
    returns: stream(fields("KeySignOutput", { Key: keyOutput, Signature: "string" })),
    async *run({ node, options: { key, "ipns-base": ipnsBase }, files }) {
      const signed = await node.key.sign((await files.one()).body, { key, ipnsBase });
      yield { Key: shown(signed.key), Signature: signed.signature };
    },
  }),
  "key/verify": readCommand({
    help: "Verifies a signature of `key/sign`.",
    since: "0.43",
    options: {
      ...signer("A key of this node by name, or the peer ID or IPNS name of another node."),
      signature: { type: "string", aliases: ["s"], default: "", help: "The signature, as multibase text." },
    },
    file: { name: "data", required: true, help: "The data." },
    returns: stream(fields("KeyVerifyOutput", { Key: keyOutput, SignatureValid: "bool" })),
    async *run({ node, options: { key, signature, "ipns-base": ipnsBase }, files }) {
      const { key: known, isValid } = await node.key.verify((await files.one()).body, signature, { key, ipnsBase });
      yield { Key: shown(known), SignatureValid: isValid };
    },
  }),
} satisfies Commands;
