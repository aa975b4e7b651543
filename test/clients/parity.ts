/**
 * Makes the same calls to a client library over HTTP and to the node in this process, and compares
 * the results.
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode } from "modhost/node";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { Rpc } from "#test/support/network/rpc.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import { comparable, type LaterResult, laterDifferences, laterResults } from "./differences.ts";
import { type DriveReport, methodsOf, useMethods } from "./every.ts";
import { methods } from "./methods.ts";
import { type Recorded, Recording } from "./recording.ts";

const token = "a-token";
const pinningFor = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_pinning",
  MODHOST_PINNING_TOKENS: JSON.stringify([token]),
};

interface Result {
  readonly recording: Recording;
  readonly drive: DriveReport;
}

const atOldLevel = { MODHOST_API_PUBSUB_WIRE: "multibase" };
const atNewLevel = { MODHOST_API_LEVEL: "0.43" };

/**
 * Uses every method over HTTP at both levels, and in process. Known differences of level 0.43 are
 * expected; all other results have to be the same. Throws if a result is wrong or differs. Yields a
 * line for each thing that was done.
 */
export async function* everyMethod(
  client: string,
  create: (url: string) => Promise<object>,
): AsyncGenerator<string, void, undefined> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    const names = new Set(methodsOf(await create("http://127.0.0.1:1")).keys());
    for (const each of ["own", "other"]) await (await createNode({ repo: join(folder, each) })).close();
    const [old, atLaterLevel, inProcess] = await Promise.all([
      meetingAnother(folder, "http", (around, repo) => overHttp(repo, create, names, around, atOldLevel)),
      meetingAnother(folder, "today", (around, repo) => overHttp(repo, create, names, around, atNewLevel)),
      meetingAnother(folder, "process", (around, repo) => here(repo, names, around)),
    ]);
    const ofClient = (all: readonly LaterResult[]) => all.filter(({ clients }) => clients?.includes(client) ?? true);
    const later = ofClient(laterResults);
    const ofLevel = ofClient(laterDifferences);
    const wrong = [
      ...old.drive.failures.map((failure) => `over HTTP, ${failure}`),
      ...unforeseen(atLaterLevel.drive.failures, later).map((text) => `over HTTP at level 0.43, ${text}`),
      ...inProcess.drive.missing.map((method) => `in process, the method ${method} is missing`),
      ...inProcess.drive.failures.map((failure) => `in process, ${failure}`),
      ...differences(old.recording, inProcess.recording, "0.9"),
      ...unforeseen(differences(atLaterLevel.recording, inProcess.recording, "0.43"), ofLevel).map(
        (text) => `at level 0.43, ${text}`,
      ),
    ];
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    yield summary(names.size, old.drive);
    yield `in process, ${summary(names.size, inProcess.drive)}`;
    yield `${inProcess.recording.calls.length} calls gave the same results, except for ${ofLevel.length} known differences of level 0.43`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function summary(all: number, { used, others }: DriveReport): string {
  const reasons = Object.entries(others).map(([why, count]) => `${count} ${why}`);
  return `${all} methods: ${[`${used} used`, ...reasons].join(", ")}`;
}

type Around = Parameters<typeof useMethods>[2];

/**
 * Uses copies of two new repos. Another process serves the other one, which also pins for this one.
 */
async function meetingAnother(
  folder: string,
  name: string,
  run: (around: Around, repo: string) => Promise<Result>,
): Promise<Result> {
  const data = join(folder, name);
  await cp(join(folder, "other"), join(data, "other", "repo"), { recursive: true });
  await cp(join(folder, "own"), join(data, "own", "repo"), { recursive: true });
  await using far = await RpcServer.start({ folder: join(data, "other"), env: pinningFor });
  const other = await Rpc.of("other", far.url);
  return await run({ other, pinning: { endpoint: `${far.url}/pinning`, token } }, join(data, "own"));
}

async function overHttp(
  folder: string,
  create: (url: string) => Promise<object>,
  names: ReadonlySet<string>,
  around: Around,
  env: NodeJS.ProcessEnv,
): Promise<Result> {
  await using server = await RpcServer.start({ folder, env: { ...apiOnly, ...env } });
  const client = await create(server.url);
  // Each call creates an event.
  const stir = () => server.call("version");
  const recording = new Recording();
  return {
    recording,
    drive: await useMethods({ client, inProcess: false, stir }, names, around, recording),
  };
}

async function here(folder: string, names: ReadonlySet<string>, around: Around): Promise<Result> {
  await using node = await createNode({ repo: join(folder, "repo"), pubsub: true, namesOverPubsub: true });
  await node.goOnline();
  const stir = async () => node.lowLevel.log.write("core", "error", "something happened");
  const recording = new Recording();
  return { recording, drive: await useMethods({ client: node, inProcess: true, stir }, names, around, recording) };
}

/** Returns calls with different outcomes, and calls that only one of the two has made. */
function differences(http: Recording, inProcess: Recording, level: LevelName): string[] {
  const [over, within] = [http, inProcess].map(({ calls }) => Map.groupBy(calls, ({ line }) => line));
  const lines = [...new Set([...(over?.keys() ?? []), ...(within?.keys() ?? [])])];
  return lines
    .filter((line) => typeof methods[line] === "function")
    .flatMap((line) => ofLine(line, over?.get(line) ?? [], within?.get(line) ?? [], level));
}

function ofLine(line: string, http: readonly Recorded[], inProcess: readonly Recorded[], level: LevelName): string[] {
  return Array.from({ length: Math.max(http.length, inProcess.length) }, (_, at) => {
    const [over, within] = [http[at], inProcess[at]].map(
      (recorded) => recorded && JSON.stringify(comparable(recorded, level)),
    );
    return over === within ? [] : [`${line}: over HTTP  ${over}\n${" ".repeat(line.length)}  in process ${within}`];
  }).flat();
}

/**
 * Returns differences that no entry of the list explains, and entries that explain no difference.
 */
function unforeseen(found: readonly string[], known: readonly LaterResult[]): string[] {
  return [
    ...found.filter((text) => !known.some(({ shows }) => shows.test(text))),
    ...known.filter(({ shows }) => !found.some((text) => shows.test(text))).map(({ reason }) => `not seen: ${reason}`),
  ];
}
