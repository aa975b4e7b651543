/** Keys of names. */
import { type Argument, defineGroup, nothing, type Option, raw, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { nameBase } from "./shapes.ts";

const key = fields("KeyOutput", { Name: "string", Id: "string" });
const keys = value(fields("KeyOutputList", { Keys: [key] }));

const name = (help: string): Argument => ({ name: "name", required: true, help });
const long: Option = { type: "bool", help: "Print identifiers, too." };

const made = {
  type: { type: "string", aliases: ["t"], default: "ed25519", help: "Type of the key: `ed25519` or `rsa`." },
  size: { type: "int", aliases: ["s"], help: "Bits of an RSA key." },
} as const satisfies Record<string, Option>;

export const commands = later({
  key: defineGroup({ help: "Make and keep the keys that names are signed with." }),
  "key/export": {
    help: "Gives the file of a key.",
    arguments: [name("The key.")],
    options: { output: { type: "string", aliases: ["o"], help: "File to write to; of no effect on the answer." } },
    returns: raw,
  },
  "key/gen": {
    help: "Makes a key.",
    arguments: [name("Its name.")],
    options: { ...made, "ipns-base": nameBase },
    returns: value(key),
  },
  "key/import": {
    help: "Takes in the file of a key.",
    arguments: [name("The name that it gets.")],
    options: { "ipns-base": nameBase },
    file: { name: "key", required: true, help: "The file, as `key/export` gives it." },
    returns: value(key),
  },
  "key/list": { help: "Lists the keys.", options: { l: long, "ipns-base": nameBase }, returns: keys },
  "key/rename": {
    help: "Gives a key another name.",
    arguments: [name("The name that it has."), { name: "newName", required: true, help: "The name that it gets." }],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Replace a key that has that name." },
      "ipns-base": nameBase,
    },
    returns: value(fields("KeyRenameOutput", { Was: "string", Now: "string", Id: "string", Overwrite: "bool" })),
  },
  "key/rm": {
    help: "Removes keys.",
    arguments: [{ name: "name", required: true, variadic: true, stdin: "first", help: "The keys." }],
    options: { l: long, "ipns-base": nameBase },
    returns: keys,
  },
  "key/rotate": {
    help: "Gives the node another identity from its next start on, and keeps the present one as a key.",
    options: {
      oldkey: { type: "string", aliases: ["o"], help: "Name under which the present identity is kept." },
      ...made,
    },
    returns: nothing,
  },
});
