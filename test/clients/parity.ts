/**
 * A client library over HTTP and the node in this process, put through the same calls: what they
 * give is the same.
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode } from "modhost/node";
import { Rpc } from "#test/support/network/rpc.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import { comparable, type LaterAnswer, type LevelName, laterAnswers, laterDifferences } from "./differences.ts";
import { type Drive, methodsOf, useMethods } from "./every.ts";
import { methods } from "./methods.ts";
import { type Recorded, Recording } from "./recording.ts";

const token = "a-token";
const pinningFor = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_pinning",
  MODHOST_PINNING_TOKENS: JSON.stringify([token]),
};

interface Result {
  readonly recording: Recording;
  readonly drive: Drive;
}

const atOldLevel = { MODHOST_API_PUBSUB_WIRE: "multibase" };
const atNewLevel = { MODHOST_API_LEVEL: "0.43" };

/**
 * Uses every method over HTTP at either level, and in process. What the level 0.43 answers
 * otherwise is known, and all else the same everywhere. Throws when something is not right, or not
 * the same; gives what was done, a line each.
 */
export async function* everyMethod(
  client: string,
  create: (url: string) => Promise<object>,
): AsyncGenerator<string, void, undefined> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    const names = new Set(methodsOf(await create("http://127.0.0.1:1")).keys());
    for (const each of ["own", "other"]) await (await createNode({ repo: join(folder, each) })).close();
    const [old, today, inProcess] = await Promise.all([
      meetingAnother(folder, "http", (around, repo) => overHttp(repo, create, names, around, atOldLevel)),
      meetingAnother(folder, "today", (around, repo) => overHttp(repo, create, names, around, atNewLevel)),
      meetingAnother(folder, "process", (around, repo) => here(repo, names, around)),
    ]);
    const ofClient = (all: readonly LaterAnswer[]) => all.filter(({ clients }) => clients?.includes(client) ?? true);
    const later = ofClient(laterAnswers);
    const ofLevel = ofClient(laterDifferences);
    const wrong = [
      ...old.drive.failures.map((failure) => `over HTTP, ${failure}`),
      ...unforeseen(today.drive.failures, later).map((text) => `over HTTP at the level 0.43, ${text}`),
      ...inProcess.drive.missing.map((method) => `in process there is no method ${method}`),
      ...inProcess.drive.failures.map((failure) => `in process, ${failure}`),
      ...differences(old.recording, inProcess.recording, "0.9"),
      ...unforeseen(differences(today.recording, inProcess.recording, "0.43"), ofLevel).map(
        (text) => `at the level 0.43, ${text}`,
      ),
    ];
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    yield summary(names.size, old.drive);
    yield `in process, ${summary(names.size, inProcess.drive)}`;
    yield `${inProcess.recording.calls.length} calls gave the same, but for ${ofLevel.length} rules of the level 0.43`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function summary(all: number, { used, others }: Drive): string {
  const reasons = Object.entries(others).map(([why, count]) => `${count} ${why}`);
  return `${all} methods: ${[`${used} used`, ...reasons].join(", ")}`;
}

type Around = Parameters<typeof useMethods>[2];

/**
 * With copies of both fresh repos: one is served by another process, which also pins for others.
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
  // Each call is an event.
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

/** Calls whose outcomes are not the same, and calls that one of the two has not made. */
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

/** What nothing of the list explains, and what in it explains nothing. */
function unforeseen(told: readonly string[], known: readonly LaterAnswer[]): string[] {
  return [
    ...told.filter((text) => !known.some(({ shows }) => shows.test(text))),
    ...known.filter(({ shows }) => !told.some((text) => shows.test(text))).map(({ reason }) => `not seen: ${reason}`),
  ];
}
