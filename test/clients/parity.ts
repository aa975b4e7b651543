/** A client library over HTTP and the node in this process, put through the same calls: what they give is the same. */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode } from "modhost/node";
import { Rpc } from "#test/support/network/rpc.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import { comparable, laterAnswers } from "./differences.ts";
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

/** Throws when something is not right, or not the same; gives what was done, a line each. */
export async function* everyMethodTwice(
  create: (url: string) => Promise<object>,
): AsyncGenerator<string, void, undefined> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    const names = new Set(methodsOf(await create("http://127.0.0.1:1")).keys());
    for (const each of ["own", "other"]) await (await createNode({ repo: join(folder, each) })).close();
    const [http, inProcess] = await Promise.all([
      meetingAnother(folder, "http", (around, repo) => overHttp(repo, create, names, around)),
      meetingAnother(folder, "process", (around, repo) => here(repo, names, around)),
    ]);
    yield summary(names.size, http.drive);
    const wrong = [
      ...http.drive.failures.map((failure) => `over HTTP, ${failure}`),
      ...inProcess.drive.missing.map((method) => `in process there is no method ${method}`),
      ...inProcess.drive.failures.map((failure) => `in process, ${failure}`),
      ...differences(http.recording, inProcess.recording),
    ];
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    yield `in process, ${summary(names.size, inProcess.drive)}`;
    yield `${inProcess.recording.calls.length} calls gave the same`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As above over HTTP alone, of a server at the level 0.43: what differs there is explained. */
export async function* everyMethodToday(
  client: string,
  create: (url: string) => Promise<object>,
): AsyncGenerator<string, void, undefined> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    const names = new Set(methodsOf(await create("http://127.0.0.1:1")).keys());
    for (const each of ["own", "other"]) await (await createNode({ repo: join(folder, each) })).close();
    const level = { MODHOST_API_LEVEL: "0.43" };
    const { drive } = await meetingAnother(folder, "http", (around, repo) =>
      overHttp(repo, create, names, around, level),
    );
    const known = laterAnswers.filter(({ clients }) => clients?.includes(client) ?? true);
    const wrong = [
      ...drive.failures.filter((failure) => !known.some(({ shows }) => shows.test(failure))),
      ...known
        .filter(({ shows }) => !drive.failures.some((failure) => shows.test(failure)))
        .map(({ reason }) => `not seen: ${reason}`),
    ];
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
    yield `${summary(names.size, drive)}; ${known.length} answer otherwise at that level`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function summary(all: number, { used, others }: Drive): string {
  const reasons = Object.entries(others).map(([why, count]) => `${count} ${why}`);
  return `${all} methods: ${[`${used} used`, ...reasons].join(", ")}`;
}

type Around = Parameters<typeof useMethods>[2];

/** With copies of both fresh repos: one is served by another process, which also pins for others. */
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
  env: NodeJS.ProcessEnv = { MODHOST_API_PUBSUB_WIRE: "multibase" },
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
function differences(http: Recording, inProcess: Recording): string[] {
  const [over, within] = [http, inProcess].map(({ calls }) => Map.groupBy(calls, ({ line }) => line));
  const lines = [...new Set([...(over?.keys() ?? []), ...(within?.keys() ?? [])])];
  return lines
    .filter((line) => typeof methods[line] === "function")
    .flatMap((line) => ofLine(line, over?.get(line) ?? [], within?.get(line) ?? []));
}

function ofLine(line: string, http: readonly Recorded[], inProcess: readonly Recorded[]): string[] {
  return Array.from({ length: Math.max(http.length, inProcess.length) }, (_, at) => {
    const [over, within] = [http[at], inProcess[at]].map(
      (recorded) => recorded && JSON.stringify(comparable(recorded)),
    );
    return over === within ? [] : [`${line}: over HTTP  ${over}\n${" ".repeat(line.length)}  in process ${within}`];
  }).flat();
}
