/** `modhost node migrate`: copies a repo to another kind of store. */
import { constants } from "node:os";
import { resolve } from "node:path";
import type { Migrated, MigrationProgress, ToSharedOptions } from "modhost/node";
import { type Command, type CommandContext, counted, Progress, UsageError } from "../../../../core/cli/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { dataFolder, textOf } from "./repo.ts";
import { settingsOf, settingsOption } from "./store.ts";

/** Milliseconds between two lines of progress if stderr is not a terminal. */
const PROGRESS_INTERVAL_MS = 5000;

const interrupting = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export const migrate: Command = {
  name: "migrate",
  arguments: "FROM TO",
  help: "Copy a repo to another repo, or to or from a store that several hosts share",
  about: [
    "FROM and TO are folders of repos. The word shared means the store that node_store of a host's config file names (write",
    "./shared for a folder of that name). From a repo to a new folder, blocks and metadata are converted to another kind of",
    "store. To and from a shared store, blocks, pins, files, published names, the state of modules and, if node_store has a",
    "keys_secret, keys for names are copied. FROM is only read, and hosts of a shared store may run meanwhile. After an",
    "interruption, run the same command again to continue. At the end it checks that everything was copied.",
  ].join("\n"),
  options: {
    kind: {
      type: "string",
      value: "KIND",
      help: "Kind of TO: segments or flatfs (go-ipfs); default: the kind that FROM does not have",
    },
    ...settingsOption,
    like: {
      type: "string",
      value: "REPO",
      help: "From shared: the repo whose config, identity and keys TO gets; default: a new identity",
    },
    "on-conflict": {
      type: "string",
      value: "WHAT",
      help: "To shared, for files and names that both have: keep (those of the store) or replace; default: copy nothing",
    },
    "copy-references": {
      type: "boolean",
      help: "To shared: store the content that the filestore and the urlstore refer to, because a shared store cannot refer to it",
    },
    verify: {
      type: "boolean",
      help: "To and from shared: at the end, read every block of TO and compare it with its hash",
    },
  },
  async run(context) {
    const { args, cwd, stdout, stderr } = context;
    const [from, to, ...more] = args;
    if (from === undefined || to === undefined || more.length > 0) {
      throw new UsageError("migrate takes two arguments, a repo and a new folder: modhost node migrate FROM TO");
    }
    requireOptions(context, from, to);
    const { isRepo } = await import("modhost/node");
    if (from !== SHARED && !(await isRepo(resolve(cwd, from))))
      throw new Error(`there is no repo ${resolve(cwd, from)}`);
    const progress = progressOf(context);
    const { signal, release } = interruption();
    try {
      const done = await copy(context, from, to, {
        signal,
        onProgress: progress.show,
        onNotice: (sentence) => {
          progress.clear();
          stderr.write(`${sentence}\n`);
        },
      });
      progress.clear();
      stdout.write(`${textFor(done)} copied to ${to === SHARED ? "the shared store" : resolve(cwd, to)}\n`);
      return 0;
    } catch (error) {
      progress.clear();
      const { retryAfter } = await import("modhost/node");
      if (retryAfter(error) !== undefined)
        stderr.write("The connection to a store was lost. Run the same command again to continue.\n");
      if (!(error instanceof Interrupted)) throw error;
      stderr.write("Interrupted. Run the same command again to continue.\n");
      return error.exitCode;
    } finally {
      release();
    }
  },
};

type MigrationEvents = Pick<ToSharedOptions, "signal" | "onProgress" | "onNotice">;

async function copy(
  context: CommandContext,
  from: string,
  to: string,
  events: MigrationEvents,
): Promise<Migrated | MigrationProgress> {
  const { options, cwd } = context;
  const { migrateFromShared, migrateRepo, migrateToShared } = await import("modhost/node");
  const verify = options.verify === true;
  const kind = kindOf(textOf(options.kind));
  if (to === SHARED) {
    const onConflict = conflictsOf(textOf(options["on-conflict"]));
    const copyReferences = options["copy-references"] === true;
    const wanted = { onConflict, copyReferences, verify, data: dataFolder(context), ...events };
    return migrateToShared(resolve(cwd, from), await settingsOf(context), wanted);
  }
  if (from !== SHARED) return migrateRepo(resolve(cwd, from), resolve(cwd, to), { kind, ...events });
  const like = textOf(options.like);
  const wanted = { kind, like: like === undefined ? undefined : resolve(cwd, like), verify, ...events };
  return migrateFromShared(await settingsOf(context), resolve(cwd, to), wanted);
}

/** Stands for the shared store where a folder is expected. */
const SHARED = "shared";
/** Options that only apply to one direction of the migration. */
const only = {
  to: ["on-conflict", "copy-references"],
  from: ["like"],
  either: ["settings", "verify"],
} as const;

function requireOptions({ options }: CommandContext, from: string, to: string): void {
  if (from === SHARED && to === SHARED) throw new UsageError("FROM and TO cannot both be shared");
  const idle = [
    ...(to === SHARED ? ["kind"] : only.to),
    ...(from === SHARED ? [] : only.from),
    ...(to === SHARED || from === SHARED ? [] : only.either),
  ].find((name) => options[name] !== undefined);
  if (idle !== undefined) throw new UsageError(`--${idle} has no effect from ${from} to ${to}`);
}

class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/**
 * Aborts with `Interrupted` on a signal, so that the migration releases the locks of both repos.
 * go-ipfs would refuse a repo whose lock is left behind.
 */
function interruption() {
  const abort = new AbortController();
  const interrupt = (signal: NodeJS.Signals) => abort.abort(new Interrupted(signal));
  for (const each of interrupting) process.on(each, interrupt);
  return {
    signal: abort.signal,
    release() {
      for (const each of interrupting) process.off(each, interrupt);
    },
  };
}

function kindOf(name: string | undefined): "segments" | "flatfs" | undefined {
  if (name === undefined || name === "segments" || name === "flatfs") return name;
  throw new UsageError(`--kind takes segments or flatfs, not ${name}`);
}

function conflictsOf(name: string | undefined): "keep" | "replace" | undefined {
  if (name === undefined || name === "keep" || name === "replace") return name;
  throw new UsageError(`--on-conflict takes keep or replace, not ${name}`);
}

function textFor(done: MigrationProgress | Migrated): string {
  const { blocks, bytes, total, isChecking } = done;
  const count = `${blocks}${total === undefined || total === blocks ? "" : ` of ${total}`} blocks`;
  if (isChecking) return `${count} are there`;
  const more =
    "pins" in done
      ? `, ${counted(done.pins, "pin")}, ${counted(done.names, "name")}, ${counted(done.keys, "key")}`
      : "";
  return `${count} (${size_text(bytes)})${more}`;
}

/** Shows a progress bar on a terminal, and otherwise prints a line from time to time. */
function progressOf({ stdout, stderr }: CommandContext) {
  if (stderr.isTTY === true) {
    let bar: Progress | undefined;
    let wasChecking = false;
    return {
      show({ blocks, total, isChecking = false }: MigrationProgress) {
        const words = isChecking ? "blocks looked for" : "blocks";
        if (wasChecking !== isChecking) bar = undefined;
        wasChecking = isChecking;
        if (total !== undefined) bar ??= new Progress(stderr, total, (count) => `${Math.round(count)} ${words}`);
        bar?.show(blocks);
      },
      clear: () => bar?.clear(),
    };
  }
  let lastReport = performance.now();
  return {
    show(progress: MigrationProgress) {
      if (performance.now() - lastReport < PROGRESS_INTERVAL_MS) return;
      lastReport = performance.now();
      stdout.write(`${textFor(progress)}\n`);
    },
    clear: () => undefined,
  };
}
