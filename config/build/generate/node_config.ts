/**
 * Generates `docs/reference/node-config.md`: the keys of the node's configuration and its profiles.
 */

import type { ConfigKey } from "#node/storage/repo/config_key.ts";
import { ignoredKeys } from "#node/storage/repo/ignored_keys.ts";
import { laterKeys } from "#node/storage/repo/later_keys.ts";
import { profiles } from "#node/storage/repo/profiles.ts";
import { configKeys } from "#node/storage/repo/schema.ts";
import { code, page, table } from "./markdown.ts";

export function nodeConfigPage(): string {
  const sections = Map.groupBy(Object.entries<ConfigKey>(configKeys), ([path]) => path.split(".")[0] as string);
  return page("The configuration of the node", "the table of keys and the profiles", [
    introduction,
    ...[...sections].map(([name, keys]) => `## ${name}\n\n${keysTable(keys)}`),
    `## Keys of later versions\n\n${laterIntroduction}\n\n${laterTable()}\n\n${ignoredIntroduction}\n\n${ignoredTable()}`,
    `## Profiles\n\n${profilesIntroduction}\n\n${profilesTable()}`,
  ]);
}

const introduction = `For operators of the storage node: the keys of the file \`config\` in the folder of the repo (\`node_repo\`), which is one JSON object. Only this file
counts: \`node_profile\` is used once, when the repo is created.

## Read and change it

The command \`config\` reads and writes a value by its dotted path, and \`config/show\` and \`config/replace\` the whole document. When the
response arrives, the value is in the file. If it applies live, it is also in force.

"Applies" says when a changed value takes effect:

- \`live\`: at once, whether a command, a profile or an editor has changed it. The node watches the file, and \`modhost reload\` reads it, too.
- \`start\`: at the next start of the node.
- \`none\`: this node does not use the key.

A value may be in the file and not yet in force. The header \`X-Modhost-Config-Waits\` of the responses of \`config\`, \`config/show\`,
\`config/replace\`, \`config/edit\` and \`config/profile/apply\` names such values, and so do standard error of \`modhost rpc config\` and
\`modhost status\`.

A live value that cannot be applied, such as an address in use, is written anyway. The previous value stays in force, the header
has the reason (\`Addresses.Swarm;reason="…"\`), and the next change or \`modhost reload\` retries it. If an editor leaves a file that is no
valid configuration, nothing changes, and the log has a warning.

## Types and defaults

"New repo" is the value in a file that is created without a profile. If it is empty, the file does not have the key until somebody sets it.
Unknown keys at the top level are preserved. Unknown keys inside a known section are dropped with the next change.

\`flag\` is null, true or false. \`priority\` is null, false or a positive number; lower goes first. \`strings\` is one text or a list.
\`duration\` is text such as \`1h30m\`, and \`size\` is text such as \`10GB\`.`;

const laterIntroduction = `Later versions of the reference (Kubo) have other keys for some settings of version 0.9. If a config has such a key, it replaces the older key,
and takes effect at the same time as that one would. The value null has no effect. Keys that stand for an option or a flag take effect at the next start.

\`auto\` in \`Bootstrap\` and in \`DNS.Resolvers\` stands for the built-in values, and \`API.Authorizations\`
[works as in Kubo](../guides/operate/rpc-access.md#use-the-secrets-of-kubo).`;

const ignoredIntroduction = `All other keys of Kubo 0.43 are preserved, and have no effect. This includes everything below a key of this table:`;

const ignoredTable = () =>
  table(
    ["Key", "Why it has no effect"],
    Object.entries(ignoredKeys).map(([path, reason]) => [code(path), reason]),
  );

/** Settings that are options of whoever starts the node. */
const choices: Readonly<Record<string, string>> = {
  pubsub: "the option `node_pubsub`, the flag `--enable-pubsub-experiment`",
  namesOverPubsub: "the option `node_namesys_pubsub`, the flag `--enable-namesys-pubsub`",
};

function laterTable(): string {
  const rows = Object.entries(laterKeys).map(([path, { kind, instead, help }]) => [
    code(path),
    kind.name,
    choices[instead] ?? code(instead),
    help,
  ]);
  return table(["Key", "Type", "Stands for", "Meaning"], rows);
}

const profilesIntroduction = `A profile is a set of changes with a name. \`config/profile/apply\` applies it to an existing repo, and \`node_profile\` to a new one (several are
separated by commas).`;

/** A longer value would not fit into a table. */
const longest = 80;

function keysTable(keys: readonly [path: string, key: ConfigKey][]): string {
  const rows = keys.map(([path, { applies, kind, init, help }]) => {
    const value = init === undefined ? "" : JSON.stringify(init);
    return [code(path), kind.name, value.length > longest ? "see the file" : code(value), applies, help];
  });
  return table(["Key", "Type", "New repo", "Applies", "Meaning"], rows);
}

function profilesTable(): string {
  const rows = Object.entries(profiles).map(([name, { help, changes }]) => [
    code(name),
    help,
    Object.keys(changes).map(code).join(", "),
  ]);
  return table(["Profile", "Purpose", "Changed keys"], rows);
}
