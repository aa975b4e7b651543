/** Keys of names. */

import { peerIdEncoder } from "../../mod_node/formats/peer_id.ts";
import type { NamedKey } from "../../mod_node/storage/keystore/keystore.ts";
import { rotateIdentity } from "../../mod_node/storage/keystore/rotate.ts";
import { readAll } from "../../mod_node/util/async/read_all.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { printable } from "../../mod_node/util/go/text.ts";
import { columns } from "../rpc/columns.ts";
import {
  type Argument,
  bytes,
  type Commands,
  defineCommand,
  defineGroup,
  nothing,
  type Option,
  raw,
  value,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { lines, nameBase } from "./shapes.ts";

const keyOutput = fields("KeyOutput", { Name: "string", Id: "string" });
const keyList = fields("KeyOutputList", { Keys: [keyOutput] });
const keys = value(keyList);

const name = <N extends string>(name: N, help: string) => ({ name, required: true, help }) as const satisfies Argument;
const long: Option = { type: "bool", help: "Print identifiers, too." };

const made = {
  type: { type: "string", aliases: ["t"], default: "ed25519", help: "Type of the key: `ed25519` or `rsa`." },
  size: { type: "int", aliases: ["s"], help: "Bits of an RSA key." },
} as const satisfies Record<string, Option>;

/** No file of a key is longer; bytes. */
const longestFile = 64 * 1024;

/** As answers show keys, their ids in the base of that name. @throws NodeError */
function shown(base: string): (key: NamedKey) => ValueOf<typeof keyOutput> {
  const encode = peerIdEncoder(base);
  return ({ name, id }) => ({ Name: name, Id: encode(id) });
}

function listText({ Keys }: ValueOf<typeof keyList>, ids: boolean): string {
  if (!ids) return lines(Keys.map(({ Name }) => printable(Name)));
  return columns(
    Keys.map(({ Name, Id }) => [Id, printable(Name), ""]),
    1,
  );
}

export const commands = {
  key: defineGroup({ help: "Make and keep the keys that names are signed with." }),
  "key/export": defineCommand({
    help: "Gives the file of a key.",
    arguments: [name("name", "The key.")],
    options: { output: { type: "string", aliases: ["o"], help: "File to write to; of no effect on the answer." } },
    returns: raw,
    async run({ arguments: { name }, lowLevel: node }) {
      const content = await node.keys.export(name);
      return bytes(content, { length: content.length });
    },
  }),
  "key/gen": defineCommand({
    help: "Makes a key.",
    arguments: [name("name", "Its name.")],
    options: { ...made, "ipns-base": nameBase },
    returns: value(keyOutput),
    async run({ arguments: { name }, options: { type, size, "ipns-base": base }, lowLevel: node }) {
      const show = shown(base);
      return show(await node.keys.generate(name, { type, size }));
    },
    text: ({ Id }) => `${Id}\n`,
  }),
  "key/import": defineCommand({
    help: "Takes in the file of a key.",
    arguments: [name("name", "The name that it gets.")],
    options: { "ipns-base": nameBase },
    file: { name: "key", required: true, help: "The file, as `key/export` gives it." },
    returns: value(keyOutput),
    async run({ arguments: { name }, options: { "ipns-base": base }, files, lowLevel: node }) {
      const show = shown(base);
      const { body } = await files.one();
      const tooLong = () => new NodeError(`the file is longer than ${longestFile} bytes`);
      const content = await readAll(body, longestFile, tooLong);
      return show(await node.keys.import(name, content));
    },
    text: ({ Id }) => `${Id}\n`,
  }),
  "key/list": defineCommand({
    help: "Lists the keys.",
    options: { l: long, "ipns-base": nameBase },
    returns: keys,
    async run({ options: { "ipns-base": base }, lowLevel: node }) {
      const show = shown(base);
      return { Keys: (await node.keys.list()).map(show) };
    },
    text: (listed, { options }) => listText(listed, options.l === true),
  }),
  "key/rename": defineCommand({
    help: "Gives a key another name.",
    arguments: [name("name", "The name that it has."), name("newName", "The name that it gets.")],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Replace a key that has that name." },
      "ipns-base": nameBase,
    },
    returns: value(fields("KeyRenameOutput", { Was: "string", Now: "string", Id: "string", Overwrite: "bool" })),
    async run({ arguments: { name: Was, newName: Now }, options, lowLevel: node }) {
      const encode = peerIdEncoder(options["ipns-base"]);
      const { id, overwritten } = await node.keys.rename(Was, Now, options.force === true);
      return { Was, Now, Id: encode(id), Overwrite: overwritten };
    },
    text: ({ Now, Id, Overwrite }) => `Key ${Id} renamed to ${printable(Now)}${Overwrite ? " with overwriting" : ""}\n`,
  }),
  "key/rm": defineCommand({
    help: "Removes keys.",
    arguments: [{ name: "name", required: true, variadic: true, stdin: "first", help: "The keys." }],
    options: { l: long, "ipns-base": nameBase },
    returns: keys,
    async run({ arguments: { name: names }, options: { "ipns-base": base }, lowLevel: node }) {
      const show = shown(base);
      const removed: NamedKey[] = [];
      for (const each of names) removed.push(await node.keys.remove(each));
      return { Keys: removed.map(show) };
    },
    text: (listed, { options }) => listText(listed, options.l === true),
  }),
  "key/rotate": defineCommand({
    help: "Gives the node another identity from its next start on, and keeps the present one as a key.",
    options: {
      oldkey: { type: "string", aliases: ["o"], help: "Name under which the present identity is kept." },
      ...made,
    },
    returns: nothing,
    async run({ options: { oldkey, type, size }, lowLevel: node }): Promise<undefined> {
      await rotateIdentity(node.repo.config, node.keys, oldkey, { type, size });
    },
  }),
} satisfies Commands;
