/** The configuration of the node. */

import { failure, printJson } from "modhost/node";
import { type Commands, defineGroup, nothing, readCommand, value, writeCommand } from "../rpc/command.ts";
import { fields, map } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";
import { editorOf } from "./editor.ts";
import { jsonDiff } from "./json_diff.ts";

/** Formats a value as text: strings without quotes, everything else as indented JSON. */
const shown = (found: unknown) => `${typeof found === "string" ? found.replace(/^\n+|\n+$/g, "") : printJson(found)}\n`;

/**
 * Maximum bytes of a configuration, which is read and compared as a whole. A configuration with a
 * thousand peering peers takes a tenth of this.
 */
const MAX_DOCUMENT = 192 * 1024;

async function textOf({ body }: FileEntry): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > MAX_DOCUMENT) {
      throw failure("INPUT_TOO_LARGE", {
        reason: `failed to decode file as config: it is longer than ${MAX_DOCUMENT} bytes`,
      });
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

const config = writeCommand({
  help: "Reads and writes values of the configuration.",
  arguments: [
    { name: "key", required: true, help: "Dotted path of the value, such as Addresses.API." },
    { name: "value", secret: true, help: "The data to write." },
  ],
  options: {
    bool: { type: "bool", help: "Write a boolean: true for the text `true`, otherwise false." },
    json: { type: "bool", help: "Parse the value as JSON." },
    "expand-auto": { type: "bool", since: "0.43", help: "Show the values that the word `auto` stands for." },
  },
  returns: value(fields("ConfigField", { Key: "string", Value: "any" })),
  async run({ node, arguments: { key, value: text }, options, level: { configRules: rules }, reportPendingKeys }) {
    const { bool, json, "expand-auto": expandAuto } = options;
    if (text !== undefined && expandAuto === true) {
      throw failure("OPTION_CONFLICT", {
        reason: "--expand-auto can only be used for reading config values, not for setting them",
      });
    }
    if (text !== undefined) await node.config.set(key, text, { bool, json, rules });
    reportPendingKeys(node.config.waiting());
    return { Key: key, Value: await node.config.get(key, { rules, expandAuto }) };
  },
  text: ({ Value }, { arguments: { value: text } }) => (text === undefined ? shown(Value) : ""),
});

export const commands = {
  config,
  "config/show": readCommand({
    help: "Shows the configuration without its secrets.",
    returns: value(map("any")),
    run({ node, options, level, reportPendingKeys }) {
      reportPendingKeys(node.config.waiting());
      // The options of `config` are also options of the commands below it. Only this one has an
      // effect here.
      const { "expand-auto": expandAuto } = options as { readonly "expand-auto"?: boolean };
      return node.config.getAll({ rules: level.configRules, expandAuto });
    },
    text: shown,
  }),
  "config/replace": writeCommand({
    help: "Replaces the configuration, except for its secrets.",
    file: { name: "file", required: true, help: "The new configuration." },
    returns: nothing,
    async run({ node, files, level, reportPendingKeys }) {
      await node.config.replace(await textOf(await files.one()), { rules: level.configRules });
      reportPendingKeys(node.config.waiting());
    },
  }),
  "config/edit": writeCommand({
    help: "Opens the configuration in an editor on the host's terminal.",
    returns: nothing,
    async run({ node, operator, signal, reportPendingKeys }) {
      await node.config.edit(editorOf(operator, node.config.path, signal));
      reportPendingKeys(node.config.waiting());
    },
  }),
  "config/profile": defineGroup({ help: "Apply profiles to the configuration." }),
  "config/profile/apply": writeCommand({
    help: "Applies a profile, after saving a copy of the configuration.",
    arguments: [{ name: "profile", required: true, help: "Name of the profile." }],
    options: { "dry-run": { type: "bool", help: "Only show what would change." } },
    returns: value(fields("ConfigUpdateOutput", { OldCfg: map("any"), NewCfg: map("any") })),
    async run({ node, arguments: { profile }, options: { "dry-run": dryRun }, reportPendingKeys }) {
      const { original, updated } = await node.config.profiles.apply(profile, { dryRun });
      reportPendingKeys(node.config.waiting());
      return { OldCfg: original, NewCfg: updated };
    },
    text: ({ OldCfg, NewCfg }) => jsonDiff(OldCfg, NewCfg),
  }),
} satisfies Commands;
