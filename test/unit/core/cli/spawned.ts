/** Runs the real program in a temporary folder, on ports that the system chooses. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { on, once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { program } from "#core/cli/program.ts";
import { launcher as ownLauncher } from "#test/support/launchers.ts";

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The line that `run` prints when it serves. */
export interface Started {
  readonly event: "started";
  readonly apps: readonly { name: string; module: string; host: string; urls: string[] }[];
  readonly ports: readonly { service: string; scheme?: string; address: string; port: number }[];
  readonly data: string;
  readonly config?: string;
  readonly failed: readonly { name: string; host: string; note?: string }[];
}

const nothing: Started = { event: "started", apps: [], ports: [], data: "", failed: [] };

export class Program {
  readonly folder: string;
  readonly #launcher: string;
  readonly #children = new Set<ChildProcessByStdio<null, Readable, Readable>>();

  /** `launcher` is the program of an installed package; default: the clone's. */
  constructor(folder: string, launcher = ownLauncher) {
    this.folder = folder;
    this.#launcher = launcher;
  }

  /** Creates a folder with these files, outside of any project. */
  static async in(files: Record<string, string>, launcher?: string): Promise<Program> {
    const folder = await mkdtemp(join(tmpdir(), "modhost-cli-"));
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    return new Program(folder, launcher);
  }

  /**
   * Calls the command within this process, which takes a tenth of the time of `run`. For commands
   * that do not listen.
   */
  async call(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    const texts = [text(stdout), text(stderr)] as const;
    const code = await program(args, {
      stdin: Object.assign(Readable.from([]), { isTTY: true }),
      stdout: stdout as unknown as NodeJS.WriteStream,
      stderr: stderr as unknown as NodeJS.WriteStream,
      cwd: this.folder,
      env: environment(more),
    });
    stdout.end();
    stderr.end();
    return { stdout: await texts[0], stderr: await texts[1], code, signal: null };
  }

  /** Runs the command to its end. */
  async run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
    return await this.#ended(this.#spawn(args, env));
  }

  /**
   * Runs the command until its first line, which says what it serves. `ended` resolves when the
   * process has ended.
   */
  async serve(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = this.#spawn(args, env);
    const ended = this.#ended(child);
    const lines = createInterface(child.stdout);
    const first = once(lines, "line") as Promise<[string]>;
    const line = await Promise.race([first.then(([line]) => line), ended.then(({ stderr }) => new Error(stderr))]);
    if (line instanceof Error) throw line;
    return {
      line,
      started: line.startsWith("{") ? (JSON.parse(line) as Started) : nothing,
      kill: (signal: NodeJS.Signals) => child.kill(signal),
      /** Resolves to the next line of the output that contains a text. */
      next: async (part: string) => {
        for await (const [line] of on(lines, "line") as AsyncIterable<[string]>) if (line.includes(part)) return line;
        return "";
      },
      ended,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const left = [...this.#children];
    await Promise.all(left.map((child) => child.kill("SIGKILL") && once(child, "exit")));
    await rm(this.folder, { recursive: true });
  }

  #spawn(args: readonly string[], more: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, [this.#launcher, ...args], {
      cwd: this.folder,
      env: environment(more),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  async #ended(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Ended> {
    const [stdout, stderr, [code, signal]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit"),
    ]);
    return { stdout, stderr, code, signal };
  }
}

/**
 * Modules that are enabled by default and need the node, which takes two thirds of the time of a
 * start.
 */
const ofTheNode = "http_api,http_admin_node";
export const withoutNode: NodeJS.ProcessEnv = { MODHOST_MODULES_DISABLED: ofTheNode };

/** Callers that need the node pass `withNode`. */
function environment(more: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const own = { MODHOST_HTTP_PORTS: "0", MODHOST_HTTPS_PORTS: "", MODHOST_ADMIN_PORT: "0", ...withoutNode };
  return { ...inherited, ...own, ...more };
}

export const withNode: NodeJS.ProcessEnv = { MODHOST_MODULES_DISABLED: "" };
