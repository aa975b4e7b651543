/**
 * `npm run test:differential -- [--family NAME] [--level 0.9|0.43] [--count N] [--seed N] [--case NAME] [--show N] [--record]`:
 * sends random calls to the reference of a level and to this node, and compares the responses.
 * GO_IPFS names the program of go-ipfs 0.9.0, KUBO that of Kubo 0.43.0. A level without its
 * reference is left out. `--show`: how many differences of a family are printed. `--case`: plays
 * one case again. `--record`: writes the responses of the reference for the test that runs without
 * it. Exits with a non-zero code if a difference is not explained.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openRepo } from "#node/storage/repo/repo.ts";
import { GoIpfs, withoutGoIpfs, withoutKubo } from "#test/support/go_ipfs.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import { families } from "./families.ts";
import { type Family, type Level, levels } from "./family.ts";
import { type CaseOutcome, casesOf, play, responder } from "./play.ts";
import { record } from "./recording.ts";
import { isUnexplained, shown, summary } from "./report.ts";
import { RawRpc } from "./rpc.ts";

const { values: given } = parseArgs({
  options: {
    family: { type: "string" },
    level: { type: "string" },
    count: { type: "string", default: "300" },
    seed: { type: "string", default: "1" },
    case: { type: "string" },
    show: { type: "string", default: "8" },
    record: { type: "boolean", default: false },
  },
});
const selection = { seed: Number(given.seed), count: Number(given.count) };

const missing: Record<Level, string | false> = { "0.9": withoutGoIpfs, "0.43": withoutKubo };
const table: string[] = [];
let played = 0;
let unexplained = 0;
for (const level of levels) {
  if (given.level !== undefined && given.level !== level) continue;
  if (missing[level] !== false) console.log(`level ${level} is left out: ${missing[level]}`);
  else await atLevel(level);
}
console.log(table.join("\n"));
process.exitCode = unexplained === 0 && played > 0 ? 0 : 1;

async function atLevel(level: Level): Promise<void> {
  const offline = ["--offline"];
  await using theirs = await (level === "0.9" ? GoIpfs.start(offline) : GoIpfs.startKubo(undefined, offline));
  await using reference = new RawRpc(theirs.url, level === "0.9" ? undefined : await theirs.gateway());
  const folder = await mkdtemp(join(tmpdir(), "modhost-differential-"));
  try {
    await prepare(join(folder, "repo"));
    const env = { ...apiOffline, MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_gateway" };
    await using server = await RpcServer.start({ folder, env: { ...env, MODHOST_API_LEVEL: level } });
    await using ours = new RawRpc(server.url, (await readFile(join(folder, "repo", "gateway"), "utf8")).trim());
    for (const family of families) {
      if (given.family !== undefined && given.family !== family.name) continue;
      if (family.levels?.includes(level) === false) continue;
      for (const call of family.before ?? []) await Promise.all([reference.ask(call), ours.ask(call)]);
      if (given.record) await record(family, level, responder(family, reference.ask));
      else await compareAll(family, level, reference, ours);
      played += 1;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Makes the repo. The gateway has a port of its own, because its responses are sandboxed on a port
 * that apps use.
 */
async function prepare(repo: string): Promise<void> {
  const made = await openRepo(repo);
  await made.config.set("Addresses.Gateway", () => "/ip4/127.0.0.1/tcp/0");
  await made.close();
}

async function compareAll(family: Family, level: Level, reference: RawRpc, ours: RawRpc): Promise<void> {
  const outcomes: CaseOutcome[] = [];
  for (const each of casesOf(family, level, selection)) {
    if (given.case !== undefined && given.case !== each.name) continue;
    outcomes.push(await play(family, level, each, responder(family, reference.ask), responder(family, ours.ask)));
  }
  const open = outcomes.filter(isUnexplained);
  for (const outcome of open.slice(0, Number(given.show))) console.log(`${family.name} ${level}, ${shown(outcome)}`);
  table.push(`${family.name} at ${level}: ${summary(outcomes)}`);
  unexplained += open.length;
}
