import { hostname } from "node:os";
import { join, resolve } from "node:path";
import gt from "semver/functions/gt.js";
import {
  type Command,
  type CommandContext,
  counted,
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
import { startOf } from "./common/start_line.ts";

export const command: Command = {
  name: "restore",
  help: "Put a backup of a host into a new folder",
  arguments: "[FOLDER|s3://BUCKET/PREFIX]",
  options: {
    to: { type: "string", value: "FOLDER", help: "The new folder, which must be missing or empty" },
    snapshot: {
      type: "string",
      value: "ID",
      help: "The snapshot, as modhost backup --list shows it; default: the latest",
    },
    force: { type: "boolean", help: "Replace a folder that is not empty; the old one is renamed" },
    ...keyOption,
  },
  about: [
    "Everything is checked while it is written to a temporary folder, which is renamed once it is complete and on the disk.",
    "Running servers are not affected. The new folder has the configuration at its top, and the data at its old relative path.",
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
  const { line: start, warnings: previous } = await startOf(snapshot, restored.to, context.env);
  const warnings = [...snapshot.notes, ...(await warningsOf(snapshot)), ...previous];
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

/**
 * @throws Error when a server is running in the folder to be replaced, because it would continue in
 * the renamed folder
 */
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

/** Lists processes of the original host that conflict with the restored one. */
async function warningsOf({ machine, version, folders }: Named): Promise<string[]> {
  const found: string[] = [];
  const own = packageVersion();
  if (gt(version, own)) found.push(`The backup was made by modhost ${version}: this is ${own}, which may not read it`);
  if (machine !== hostname()) return found;
  for (const { was } of folders) {
    const holder = await repoHolder(was).catch(() => undefined);
    if (holder !== undefined) found.push(`The original in ${was} is in use now, by ${holder}: stop it first`);
  }
  return found;
}

/** Returns the process that uses a repo. A host without the packages of the node has none. */
async function repoHolder(folder: string): Promise<string | undefined> {
  const { lockHolder } = await import("modhost/node");
  return lockHolder(folder);
}

function restoredText(
  { id, folders, machine }: Named,
  { to, files, bytes, previous }: Restored,
  start: string,
): string {
  const others = folders.some(({ name }) => name === "files");
  return [
    `Restored ${counted(files, "file")}, ${size_text(bytes)}, to ${to}: ${id} of ${machine}`,
    ...(previous === undefined ? [] : [`  The previous folder is now ${previous}`]),
    ...(others ? [`  Files of other folders are in ${join(to, "files")}: move them back to their original paths`] : []),
    `  Start it: ${start}`,
  ].join("\n");
}
