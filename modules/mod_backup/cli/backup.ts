import { stat } from "node:fs/promises";
import {
  adminSocket,
  type Command,
  type CommandContext,
  columns,
  counted,
  NoServerError,
  Progress,
  sendLines,
  socketOption,
  statusOf,
  UsageError,
  withHost,
} from "../../../core/cli/index.ts";
import { loadConfig } from "../../../core/index.ts";
import { size_text } from "../../../core/net/http.ts";
import type { ModuleState } from "../../../core/types.ts";
import type { Named } from "../repository/format.ts";
import type { BackupLine, BackupModule, BackupProgress, BackupRequest, BackupResult } from "../types.ts";
import { keyOption, named, openNamed, textOf, untilStopped } from "./common/arguments.ts";

export const command: Command = {
  name: "backup",
  help: "Back up the host, whether or not it runs, to a folder or an object store",
  arguments: "[FOLDER|s3://BUCKET/PREFIX]",
  options: {
    keep: { type: "string", value: "N", help: "Keep only the N latest snapshots afterwards" },
    list: { type: "boolean", help: "Make no backup: list the snapshots" },
    verify: { type: "boolean", help: "Make no backup: read and check everything that snapshots refer to" },
    repair: {
      type: "boolean",
      help: "With --verify: remove damaged objects, so that the next backup writes them again if the host still has the data",
    },
    ...keyOption,
    ...socketOption,
  },
  about: [
    "Without a destination, the option backup_to names it. If a server runs on the configuration, that server makes the",
    "backup, as its own user. Otherwise the command makes it, and locks the repo of the node meanwhile. Data that the",
    "destination already contains is not written again. Exit codes: 0 done, 1 failed or damaged.",
  ].join("\n"),
  run(context) {
    const { options } = context;
    if (options.list === true && options.verify === true) throw new UsageError("Give either --list or --verify");
    if (options.repair === true && options.verify !== true) throw new UsageError("--repair goes with --verify");
    if (options.list === true) return list(context);
    if (options.verify === true) return untilStopped((signal) => verifyAll(context, signal));
    return untilStopped((signal) => backUp(context, signal));
  },
};

async function backUp(context: CommandContext, signal: AbortSignal): Promise<number> {
  const { output, stderr } = context;
  const request: BackupRequest = { ...named(context), ...keepOf(context) };
  const shown = new Shown(context);
  try {
    const result =
      (await byServer(context, request, { signal, progress: (now) => shown.show(now) })) ??
      (await byItself(context, request, { signal, progress: (now) => shown.show(now) }));
    shown.clear();
    for (const warning of result.warnings) stderr.write(`modhost: ${warning}\n`);
    output.show(result, () => resultText(result));
    return 0;
  } finally {
    shown.clear();
  }
}

const NO_SERVER = "no server runs on this configuration, so this command backs up its data";
const NONE_FOUND =
  "this command backs up the data of the configuration. It cannot find out whether a server runs on it without the module http_admin: if one runs, add http_admin to modules_enabled, and that server makes the backup";

interface Work {
  readonly signal: AbortSignal;
  readonly progress: (progress: BackupProgress) => void;
}

/**
 * Runs the backup in the running server; undefined when no server is found. @throws Error with the
 * server's message
 */
async function byServer(
  context: CommandContext,
  request: BackupRequest,
  { signal, progress }: Work,
): Promise<BackupResult | undefined> {
  const { options } = context;
  const socket = await adminSocket(context, options.socket);
  try {
    requireModule((await statusOf(socket)).modules);
    for await (const line of sendLines<BackupLine>(socket, "POST", "/backup", { ...request }, signal)) {
      if ("progress" in line) progress(line.progress);
      else if ("failed" in line) throw new Error(line.failed);
      else return line.done;
    }
  } catch (error) {
    if (!(error instanceof NoServerError) || options.socket !== undefined) throw error;
    return undefined;
  }
  throw new Error("The server ended before the backup did: earlier snapshots are unchanged");
}

async function byItself(context: CommandContext, request: BackupRequest, work: Work): Promise<BackupResult> {
  const { configPath, cwd, env, stderr } = context;
  await requireOwner(context);
  return withHost({ configPath, cwd, env }, (host) => {
    const modules = host.modules();
    requireModule(modules);
    // A command finds the server by the socket of this module.
    stderr.write(`modhost: ${isLoaded(modules, "http_admin") ? NO_SERVER : NONE_FOUND}\n`);
    return host.exports<BackupModule>("backup").run(request, { ...work, by: "modhost backup" });
  });
}

const isLoaded = (modules: readonly ModuleState[], module: string): boolean =>
  modules.some(({ name, status }) => name === module && status === "loaded");

/** @throws Error when the module is not loaded */
function requireModule(modules: readonly ModuleState[]): void {
  if (!isLoaded(modules, "backup")) throw new Error("The module backup is not loaded: add it to modules_enabled");
}

/**
 * @throws Error when files that this command makes in the data folder would be unreadable for the
 * folder's owner
 */
async function requireOwner({ configPath, cwd, env }: CommandContext): Promise<void> {
  const config = await loadConfig({ path: configPath, cwd, env });
  const data = String(config.value("data_path"));
  const { uid } = (await stat(data).catch(() => undefined)) ?? {};
  if (uid === undefined || uid === (process.getuid?.() ?? uid)) return;
  throw new Error(`${data} belongs to another user: while no server runs, back it up as that one: sudo -u '#${uid}' …`);
}

function keepOf({ options }: CommandContext): Pick<BackupRequest, "keep"> {
  const text = textOf(options, "keep");
  if (text === undefined) return {};
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`--keep takes a whole number from 1 on, not ${text}`);
  return { keep: Number(text) };
}

function resultText({ id, place: destination, files, bytes, added, seconds, removed }: BackupResult): string {
  const gone = removed.length === 0 ? "" : `; ${counted(removed.length, "older snapshot")} removed`;
  return `Backed up ${counted(files, "file")}, ${size_text(bytes)}, to ${destination} in ${seconds} s: ${size_text(added)} were new${gone}\n  ${id}`;
}

async function list(context: CommandContext): Promise<number> {
  const repository = await openNamed(context);
  const snapshots: Named[] = [];
  for (const id of await repository.snapshotIds()) snapshots.push(await repository.snapshot(id));
  const facts = snapshots.map(({ id, time, files, bytes, added, machine, version }) => {
    return { id, time, files, bytes, added, machine, version };
  });
  context.output.show(facts, () => {
    if (facts.length === 0) return `There is no snapshot in ${repository.backend.name} yet`;
    const rows = facts.map(({ id, files, bytes, added, machine, version }) => {
      return [id, String(files), size_text(bytes), size_text(added), machine, version];
    });
    return columns([["SNAPSHOT", "FILES", "SIZE", "NEW", "MACHINE", "VERSION"], ...rows]);
  });
  return 0;
}

async function verifyAll(context: CommandContext, signal: AbortSignal): Promise<number> {
  const { verify } = await import("../repository/upkeep.ts");
  const { stderr, output, options } = context;
  const repair = options.repair === true;
  const isShown = stderr.isTTY === true && !output.json;
  let bar: Progress | undefined;
  const found = await verify(await openNamed(context), {
    signal,
    repair,
    progress: (done, total) => {
      if (isShown) bar ??= new Progress(stderr, total, (count) => counted(Math.round(count), "object"));
      bar?.show(done);
    },
  });
  bar?.clear();
  const { snapshots, objects, bytes, faults } = found;
  for (const fault of faults) stderr.write(`modhost: ${fault}\n`);
  output.show(found, () => {
    const all = `${counted(snapshots, "snapshot")}, ${counted(objects, "object")}, ${size_text(bytes)}`;
    if (faults.length === 0) return `${all}: everything is intact`;
    const next = repair
      ? "Damaged objects are removed: make another backup, which writes what the host still has"
      : "--repair removes damaged objects, and the next backup writes them again if the host still has the data";
    return `${all}: ${faults.length} missing or damaged. ${next}`;
  });
  return faults.length === 0 ? 0 : 1;
}

/** Shows the progress on a terminal. */
class Shown {
  readonly #context: CommandContext;
  #bar: Progress | undefined;

  constructor(context: CommandContext) {
    this.#context = context;
  }

  show({ bytes, total }: BackupProgress): void {
    const { stderr, output } = this.#context;
    if (stderr.isTTY !== true || output.json) return;
    this.#bar ??= new Progress(stderr, total);
    this.#bar.show(bytes);
  }

  clear(): void {
    this.#bar?.clear();
  }
}
