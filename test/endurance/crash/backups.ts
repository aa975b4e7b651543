/**
 * Backs up a node while it works, kills the backup or the server in the middle, and restores the
 * backup: all changes that were acknowledged before must exist and be consistent.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { launcher } from "#test/support/launchers.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { firstServer, serverEnv } from "./crash.ts";
import { digest, observe } from "./items.ts";
import { Model } from "./model.ts";
import { CrashWorks } from "./works.ts";

export interface BackupCyclesOptions {
  readonly folder: string;
  /** Each cycle has a backup that is killed and one that is restored. */
  readonly cycles: number;
  /** Maximum milliseconds of work before a backup, and before a kill. */
  readonly longest?: number;
  readonly report?: (line: string) => void;
}

export interface BackupCyclesResult {
  readonly restored: number;
  readonly kills: number;
  readonly acknowledged: number;
  readonly wrong: readonly string[];
}

const WORKERS = 4;
/** Number of snapshots to retain. */
const KEEP = "3";

export async function backupCycles(options: BackupCyclesOptions): Promise<BackupCyclesResult> {
  const { cycles, longest = 700, report } = options;
  const [data, target] = ["data", "backups"].map((name) => join(options.folder, name)) as [string, string];
  await mkdir(data);
  const model = new Model();
  const works = new CrashWorks(data, model);
  const wrong: string[] = [];
  let server = await firstServer(data);
  let restored = 0;
  let kills = 0;
  try {
    model.begin(await observe(server));
    for (let cycle = 0; cycle < cycles && wrong.length === 0; cycle += 1) {
      const load = new Load(server, works);
      await sleep(Math.random() * longest);
      kills += 1;
      if (cycle % 2 === 0) await killedBackup(data, target, longest);
      else {
        const backup = command(data, ["backup", target]);
        await sleep(Math.random() * longest);
        await server.kill("SIGKILL");
        await Promise.all([load.end(), backup.ended]);
        server = await RpcServer.start({ folder: data, env: serverEnv });
        wrong.push(...model.settle(await observe(server)));
      }
      const again = cycle % 2 === 0 ? load : new Load(server, works);
      const window = model.window();
      const { code, text } = await command(data, ["backup", target, "--keep", KEEP]).ended;
      window.close();
      await again.end();
      if (code !== 0) wrong.push(`the backup ended with ${code}: ${text}`);
      const to = join(options.folder, `restored-${cycle}`);
      wrong.push(...(await failures(data, ["backup", target, "--verify"], ["restore", target, "--to", to])));
      if (wrong.length > 0) break;
      const found = await lookedAt(join(to, "data"), model);
      wrong.push(...found.wrong, ...window.differences(found.items));
      restored += 1;
      report?.(
        `cycle ${cycle + 1}: ${model.acknowledged} acknowledged, ${found.items.size} items, ${wrong.length} wrong`,
      );
      if (wrong.length === 0) await rm(to, { recursive: true });
    }
    return { restored, kills, acknowledged: model.acknowledged, wrong };
  } finally {
    await server.stop();
  }
}

/** Work that continues until it or the server is ended. */
class Load {
  #isOver = false;
  readonly #work: Promise<unknown>;

  constructor(server: RpcServer, works: CrashWorks) {
    const work = async () => {
      while (!this.#isOver) await works.any(server);
    };
    this.#work = Promise.all(Array.from({ length: WORKERS }, () => work().catch(() => undefined)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }
}

/** Returns the command line with the server's configuration. */
function command(data: string, args: readonly string[]) {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [launcher, ...args, "--json"], {
    cwd: data,
    env: { ...env, ...serverEnv, MODHOST_DATA_PATH: data },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const text: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (piece: string) => text.push(piece));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, text: text.join("") }));
  return { child, ended };
}

async function killedBackup(data: string, target: string, longest: number): Promise<void> {
  const { child, ended } = command(data, ["backup", target]);
  await sleep(Math.random() * longest);
  child.kill("SIGKILL");
  await ended;
}

/** Runs commands, and returns the ones that fail with their output. */
async function failures(data: string, ...all: readonly (readonly string[])[]): Promise<string[]> {
  const failed: string[] = [];
  for (const args of all) {
    const { code, text } = await command(data, args).ended;
    if (code !== 0) failed.push(`${args.join(" ")} ended with ${code}: ${text}`);
  }
  return failed;
}

/**
 * Starts a restored node. Returns its items, damaged blocks, incomplete pins, and content that
 * differs.
 */
async function lookedAt(data: string, model: Model): Promise<{ wrong: string[]; items: Map<string, string> }> {
  await using server = await RpcServer.start({ folder: data, env: serverEnv });
  const text = async (name: string, query: Readonly<Record<string, string>> = {}) => {
    const response = await server.call(name, query);
    return { ok: response.ok, body: Buffer.from(await response.arrayBuffer()) };
  };
  const items = await observe(server);
  const wrong: string[] = [];
  const verified =
    String((await text("repo/verify")).body)
      .trim()
      .split("\n")
      .at(-1) ?? "";
  if (!verified.includes("all blocks validated")) wrong.push(`repo/verify: ${verified}`);
  for (const line of String((await text("pin/verify")).body)
    .trim()
    .split("\n"))
    wrong.push(...line.split("\n").filter(Boolean));
  for (const name of items.keys()) {
    const cid = /^pin (.*)$/.exec(name)?.[1];
    const content = cid === undefined ? undefined : model.contents.get(cid);
    if (cid === undefined || content === undefined) continue;
    const { ok, body } = await text(content.command, { arg: `${cid}${content.below ?? ""}`, timeout: "20s" });
    if (!ok || digest(body) !== content.digest) wrong.push(`${content.command} of ${cid} is not what was stored`);
  }
  return { wrong, items };
}
