import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { lockHolder } from "modhost/node";
import gt from "semver/functions/gt.js";
import {
  type Command,
  type CommandContext,
  NoServerError,
  Progress,
  statusOf,
  UsageError,
} from "../../../core/cli/index.ts";
import { packageVersion } from "../../../core/index.ts";
import { size_text } from "../../../core/net/http.ts";
import type { Named } from "../repository/format.ts";
import type { Repository } from "../repository/repository.ts";
import { type Restored, restore } from "../restore.ts";
import { keyOption, openNamed, textOf, untilStopped } from "./common/arguments.ts";

export const command: Command = {
  name: "restore",
  help: "Put a backup of a host into a new folder",
  arguments: "[FOLDER|s3://BUCKET/PREFIX]",
  options: {
    to: { type: "string", value: "FOLDER", help: "The folder: missing or empty" },
    snapshot: {
      type: "string",
      value: "ID",
      help: "Which snapshot, as --list of backup shows it; default: the latest",
    },
    force: { type: "boolean", help: "Where the folder has something, rename it, and put this one in its place" },
    ...keyOption,
  },
  about: [
    "All is checked as it is written, beside the folder, which appears when it is whole and on the disk. No server is",
    "touched. The configuration is on top of the folder, the data where it stood in relation to it.",
  ].join("\n"),
  run: (context) => untilStopped((signal) => run(context, signal)),
};

async function run(context: CommandContext, signal: AbortSignal): Promise<number> {
  const { options, output, stderr, cwd } = context;
  const to = textOf(options, "to");
  if (to === undefined) throw new UsageError("restore needs --to FOLDER");
  const repository = await openNamed(context);
  const snapshot = await chosen(repository, textOf(options, "snapshot"));
  const isShown = stderr.isTTY === true && !output.json;
  const bar = isShown ? new Progress(stderr, snapshot.bytes) : undefined;
  const force = options.force === true;
  const folder = resolve(cwd, to);
  if (force) await requireUnused(folder, snapshot);
  const restored = await restore(repository, snapshot, {
    to: folder,
    force,
    signal,
    progress: (bytes) => bar?.show(bytes),
  }).finally(() => bar?.clear());
  const warnings = [...snapshot.notes, ...(await warningsOf(snapshot))];
  const start = startLine(snapshot, restored.to);
  for (const warning of warnings) stderr.write(`modhost: ${warning}\n`);
  output.show({ snapshot: snapshot.id, ...restored, start, warnings }, () => restoredText(snapshot, restored, start));
  return 0;
}

async function chosen(repository: Repository, id: string | undefined): Promise<Named> {
  const ids = await repository.snapshotIds();
  const found = id === undefined ? ids.at(-1) : ids.find((each) => each === id);
  if (found !== undefined) return repository.snapshot(found);
  if (id === undefined) throw new Error(`There is no snapshot in ${repository.backend.name}`);
  throw new Error(`There is no snapshot ${id} in ${repository.backend.name}: modhost backup --list shows all`);
}

/** @throws Error where a server runs in the folder that is to be replaced: it would go on in the renamed one */
async function requireUnused(to: string, { folders }: Named): Promise<void> {
  for (const data of new Set([to, ...folders.map((folder) => join(to, folder.to))])) {
    const isServed = await statusOf(join(data, "admin.sock")).then(
      () => true,
      (error: unknown) => !(error instanceof NoServerError),
    );
    if (isServed)
      throw new Error(`A server runs on ${data}: stop it first (modhost stop), or restore to another folder`);
  }
}

/** What of the original is in the way. */
async function warningsOf({ machine, version, folders }: Named): Promise<string[]> {
  const found: string[] = [];
  const own = packageVersion();
  if (gt(version, own)) found.push(`The backup was made by modhost ${version}: this is ${own}, which may not read it`);
  if (machine !== hostname()) return found;
  for (const { was } of folders) {
    const holder = await lockHolder(was).catch(() => undefined);
    if (holder !== undefined) found.push(`The original in ${was} is in use now, by ${holder}: stop it first`);
  }
  return found;
}

/** The command that starts the restored host. */
function startLine({ config, folders }: Named, to: string): string {
  const set = folders.flatMap(({ option, to: folder }) => {
    return option === undefined ? [] : [`MODHOST_${option.toUpperCase()}=${quoted(join(to, folder))} `];
  });
  if (config === undefined) return `cd ${quoted(to)} && ${set.join("")}modhost run`;
  return `${set.join("")}modhost run --config ${quoted(join(to, config))}`;
}

const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

function restoredText({ id, folders, machine }: Named, { to, files, bytes, former }: Restored, start: string): string {
  const others = folders.some(({ name }) => name === "files");
  return [
    `Restored ${files} files, ${size_text(bytes)}, to ${to}: ${id} of ${machine}`,
    ...(former === undefined ? [] : [`  What was there is now in ${former}`]),
    ...(others ? [`  Files of other folders are in ${join(to, "files")}: put them back to where they stood`] : []),
    `  Start it: ${start}`,
  ].join("\n");
}
