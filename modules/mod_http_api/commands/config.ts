/** The configuration document of the node. */

import { parseJson, printJson } from "../../mod_node/storage/repo/json.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type Commands, defineCommand, defineGroup, nothing, value } from "../rpc/command.ts";
import { jsonDiff } from "../rpc/json_diff.ts";
import { fields, map } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";
import { editConfig } from "./config_edit.ts";

/** As people read a value: text bare, all else as indented JSON. */
const shown = (found: unknown) => `${typeof found === "string" ? found.replace(/^\n+|\n+$/g, "") : printJson(found)}\n`;

/** No document is longer; bytes. */
const longest = 4 * 1024 * 1024;

async function textOf({ body }: FileEntry): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > longest) throw new NodeError("failed to decode file as config");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new NodeError(`failed to unmarshal json. ${(error as Error).message}`, { cause: error });
  }
}

export const commands = {
  config: defineCommand({
    help: "Reads and writes values of the configuration.",
    arguments: [
      { name: "key", required: true, help: "Dotted path of the value, such as Addresses.API." },
      { name: "value", secret: true, help: "What to write there." },
    ],
    options: {
      bool: { type: "bool", help: "Write true for the text `true`, and false for any other." },
      json: { type: "bool", help: "Write the value that the text is as JSON." },
    },
    returns: value(fields("ConfigField", { Key: "string", Value: "any" })),
    async run({ arguments: { key, value: text }, options: { bool, json }, lowLevel: node }) {
      const { config } = node.repo;
      if (text === undefined) return { Key: key, Value: await config.get(key) };
      const written = json === true ? () => parsed(text) : () => (bool === true ? text === "true" : text);
      return { Key: key, Value: await config.set(key, written) };
    },
    text: ({ Value }, { arguments: { value: text } }) => (text === undefined ? shown(Value) : ""),
  }),
  "config/show": defineCommand({
    help: "Shows the whole configuration, less its secrets.",
    returns: value(map("any")),
    run: ({ lowLevel: node }) => node.repo.config.show(),
    text: shown,
  }),
  "config/replace": defineCommand({
    help: "Puts another configuration in the place of this one; secrets stay.",
    file: { name: "file", required: true, help: "The new configuration." },
    returns: nothing,
    async run({ files, lowLevel: node }) {
      await node.repo.config.replace(await textOf(await files.one()));
    },
  }),
  "config/edit": defineCommand({
    help: "Opens the configuration in the editor of the host's terminal.",
    returns: nothing,
    run: ({ lowLevel: node, operator, signal }) => editConfig(node.repo.config, operator, signal),
  }),
  "config/profile": defineGroup({ help: "Apply profiles to the configuration." }),
  "config/profile/apply": defineCommand({
    help: "Applies a profile; the configuration as it was is kept beside it.",
    arguments: [{ name: "profile", required: true, help: "Name of the profile." }],
    options: { "dry-run": { type: "bool", help: "Only tell what would change." } },
    returns: value(fields("ConfigUpdateOutput", { OldCfg: map("any"), NewCfg: map("any") })),
    async run({ arguments: { profile }, options, lowLevel: node }) {
      const { before, after } = await node.repo.config.applyProfile(profile, { dryRun: options["dry-run"] === true });
      return { OldCfg: before, NewCfg: after };
    },
    text: ({ OldCfg, NewCfg }) => jsonDiff(OldCfg, NewCfg),
  }),
} satisfies Commands;
