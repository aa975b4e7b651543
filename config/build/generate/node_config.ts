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

const introduction = `The file \`config\` in the folder of the repo (\`node_repo\`) is one JSON object with these keys. It is the only truth for the
node: \`node_profile\` is looked at once, when the repo is made. The command \`config\` reads and writes values by their dotted
path, \`config/show\` and \`config/replace\` the whole; a value is in the file, and in force where it
applies live, when the answer is sent.

"Applies" tells when a changed value is in force. \`live\`: at once, whoever changes it: a command, an editor (the file is watched; \`modhost
reload\` looks at it, too), a profile. \`start\`: from the next start of the node on. \`none\`: this node does not use it. What is in the file
and not in force is named in the header \`X-Modhost-Config-Waits\` of the answers of \`config\`, \`config/show\`, \`config/replace\`,
\`config/edit\` and \`config/profile/apply\`, which have the reference's bodies; on the error output of \`modhost rpc config\`; and in \`modhost status\`.
A live value that cannot be applied, such as an address that is taken, is written all the same: the former one stays in force, the
header has the reason (\`Addresses.Swarm;reason="…"\`), and the next change or \`modhost reload\` tries it again. A file that is no
configuration, edited by hand, changes nothing but a warning in the log.

"New repo" is what the file has when it is made without a profile; where nothing stands there the key is left out until it is
set. Unknown keys at the top are kept, unknown keys inside a known section are dropped with the next change. \`flag\` is null, true
or false; \`priority\` is null, false or a positive number, lower first; \`strings\` is one text or a list; \`duration\` is text such as
\`1h30m\`; \`size\` is text such as \`10GB\`.`;

const laterIntroduction = `Later versions of the reference (Kubo) have other keys for what version 0.9 sets elsewhere. Where a config has one of these,
it counts, and not what it stands for, and applies as that does; null says nothing. Those for a choice of who starts the node wait
for the next start. Besides, \`auto\` in \`Bootstrap\` and in
\`DNS.Resolvers\` stands for what is built in, and \`API.Authorizations\` is honoured ([how](../../modules/mod_http_api/README.md#apiauthorizations)).`;

const ignoredIntroduction =
  "All other keys of Kubo 0.43 are kept, without effect. What is below one of these belongs to it:";

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

const profilesIntroduction = `Changes by name: \`config/profile/apply\` makes them in a repo that is there, \`node_profile\` when a repo is made (several are
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
  return table(["Profile", "What it is for", "Keys that it changes"], rows);
}
