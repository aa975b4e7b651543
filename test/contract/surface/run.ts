/**
 * `npm run surface -- [--level 0.43] [--store shared] [--left]`: compares every endpoint of the
 * contract with its declaration, the contract and the reference, and calls it on a running server.
 * Exits with 1 if something differs or fails. `--left` deletes solved differences from the list of
 * those that are left at level 0.43.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseServer } from "#modules/mod_http_api/cli/rpc/server.ts";
import { table as tableThen } from "#modules/mod_http_api/commands/index.ts";
import { isCommand } from "#modules/mod_http_api/rpc/command.ts";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { storeEnvironment } from "#test/support/engines/store_option.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { callsAt, type EarlierResults } from "./calls.ts";
import { differences } from "./compare.ts";
import { readSurface } from "./contract.ts";
import { explained as explanations, leftAt, leftFile } from "./explained.ts";
import { callEndpoint, type EndpointOutcome } from "./live.ts";

const { values } = parseArgs({
  options: { level: { type: "string", default: "0.9" }, store: { type: "string" }, left: { type: "boolean" } },
});
const level: LevelName = values.level === "0.43" ? "0.43" : "0.9";
const table = tableThen.at(level);
const calls = callsAt(level);
const explained = explanations[level];
const left = leftAt(level);
const surface = readSurface(level);
const known = new Set([...explained.flatMap(([, lines]) => lines), ...left]);
const found = differences(table, surface);
const differing = found.filter((line) => !known.has(line));
const isTaken = (line: string) => values.left === true && left.includes(line);
const gone = [...known].filter((line) => !found.includes(line) && !isTaken(line));
if (values.left === true) {
  await writeFile(
    leftFile,
    `${JSON.stringify(
      left.filter((line) => found.includes(line)),
      undefined,
      2,
    )}\n`,
  );
}

const outcomes = await callAll();
const problems = [
  ...differing,
  ...gone.map((line) => `${line} (explained, but does not exist)`),
  ...Object.keys(surface.endpoints).flatMap((path) => (path in calls ? [] : [`${path}: has no call`])),
];

let passed = 0;
let failed = 0;
const counts = { works: 0, fails: 0, missing: 0 };
for (const path of Object.keys(surface.endpoints)) {
  const outcome = outcomes.get(path);
  const own = problems.filter((line) => line.startsWith(`${path}: `));
  counts[outcome?.state ?? "missing"] += 1;
  const isLeft = left.includes(`${path}: is not declared`);
  const ok = own.length === 0 && (outcome === undefined ? isLeft : outcome.state !== "fails");
  if (ok) passed += 1;
  else failed += 1;
  const notes = [
    ...(outcome?.state === "fails" ? [outcome.why] : []),
    ...own.map((line) => line.slice(path.length + 2)),
  ];
  const { parameters } = surface.endpoints[path]!;
  console.log(
    `${ok ? "pass" : "FAIL"}  ${path.padEnd(28)} ${(outcome?.state ?? "missing").padEnd(9)} ${String(parameters.length).padStart(2)} parameters  ${notes.join("; ")}`.trimEnd(),
  );
}
for (const line of problems.filter((line) => !(line.split(":")[0]! in surface.endpoints))) {
  failed += 1;
  console.log(`FAIL  ${line}`);
}
console.log(`\n${explained.length} kinds of differences are intended:`);
for (const [reason, lines] of explained)
  console.log(`  ${reason}: ${lines.map((line) => line.split(":")[0]).join(", ")}`);
if (left.length > 0) console.log(`\n${left.length} differences are left to be removed:\n  ${left.join("\n  ")}`);
console.log(`\n${outcomes.size} endpoints: ${counts.works} work, ${counts.fails} fail, ${counts.missing} are missing`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function callAll(): Promise<Map<string, EndpointOutcome>> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-surface-"));
  try {
    const start = async (name: string) => {
      const own = join(folder, name);
      await mkdir(own);
      const env = {
        MODHOST_MODULES_ENABLED: "http,http_api",
        MODHOST_API_LEVEL: level,
        ...(await storeEnvironment(values.store)),
      };
      return RpcServer.start({ folder: own, env });
    };
    await using started = await start("called");
    await using other = await start("other");
    const server = parseServer(started.url, "the test");
    const identity = (await (await other.call("id")).json()) as EarlierResults[string];
    const results: Record<string, EarlierResults[string]> = { other: identity };
    const all = new Map<string, EndpointOutcome>();
    for (const [path, call] of Object.entries(calls)) {
      const entry = table.node(path)?.entry;
      if (entry === undefined || !isCommand(entry)) continue;
      const fails = (error: unknown): EndpointOutcome => ({ state: "fails", why: String(error) });
      all.set(path, await callEndpoint(server, path, entry, call, results).catch(fails));
    }
    return all;
  } finally {
    await rm(folder, { recursive: true });
  }
}
