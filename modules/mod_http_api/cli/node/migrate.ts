/** `modhost node migrate`. */
import { constants } from "node:os";
import { resolve } from "node:path";
import type { MigrationProgress } from "modhost/node";
import { type Command, type CommandContext, Progress, UsageError } from "../../../../core/cli/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { textOf } from "./repo.ts";

/** Milliseconds between two lines of progress if stderr is not a terminal. */
const PROGRESS_INTERVAL_MS = 5000;

const interrupting = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export const migrate: Command = {
  name: "migrate",
  arguments: "FROM TO",
  help: "Copy the repo FROM to the new folder TO, converting its blocks and metadata to another kind of store",
  options: {
    kind: { type: "string", value: "KIND", help: "segments or flatfs (go-ipfs); default: the one that FROM is not" },
  },
  async run(context) {
    const { args, options, cwd, stdout, stderr } = context;
    const [from, to, ...more] = args;
    if (from === undefined || to === undefined || more.length > 0) {
      throw new UsageError("migrate takes two arguments, a repo and a new folder: modhost node migrate FROM TO");
    }
    const { isRepo, migrateRepo } = await import("modhost/node");
    if (!(await isRepo(resolve(cwd, from)))) throw new Error(`there is no repo ${resolve(cwd, from)}`);
    const tell = progressOf(context);
    const { signal, release } = interruption();
    try {
      const done = await migrateRepo(resolve(cwd, from), resolve(cwd, to), {
        kind: kindOf(textOf(options.kind)),
        signal,
        onProgress: tell.show,
        onNotice: (sentence) => {
          tell.clear();
          stderr.write(`${sentence}\n`);
        },
      });
      tell.clear();
      stdout.write(`${textFor(done)} copied to ${resolve(cwd, to)}\n`);
      return 0;
    } catch (error) {
      tell.clear();
      if (!(error instanceof Interrupted)) throw error;
      stderr.write("Interrupted. The same command goes on from here.\n");
      return error.exitCode;
    } finally {
      release();
    }
  },
};

class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** Aborts with `Interrupted` on a signal, so that the locks of both repos are released, which go-ipfs would respect. */
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

const textFor = ({ blocks, bytes, total }: MigrationProgress): string =>
  `${blocks}${total === undefined || total === blocks ? "" : ` of ${total}`} blocks (${size_text(bytes)})`;

/** A progress bar on a terminal, otherwise a line from time to time. */
function progressOf({ stdout, stderr }: CommandContext) {
  if (stderr.isTTY === true) {
    let bar: Progress | undefined;
    return {
      show({ blocks, total }: MigrationProgress) {
        if (total !== undefined) bar ??= new Progress(stderr, total, (count) => `${Math.round(count)} blocks`);
        bar?.show(blocks);
      },
      clear: () => bar?.clear(),
    };
  }
  let told = performance.now();
  return {
    show(progress: MigrationProgress) {
      if (performance.now() - told < PROGRESS_INTERVAL_MS) return;
      told = performance.now();
      stdout.write(`${textFor(progress)}\n`);
    },
    clear: () => undefined,
  };
}
