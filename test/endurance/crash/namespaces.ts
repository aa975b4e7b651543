/**
 * Nodes on one folder, each with process ids of its own, as containers have them: one serves, and
 * loses nothing.
 */
import { inNamespace } from "#test/support/namespaces.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";

export interface NamespaceOptions {
  readonly folder: string;
  readonly cycles: number;
  readonly report?: (line: string) => void;
}

export interface NamespaceResult {
  /** Adds answered with success. */
  readonly acknowledged: number;
  /** Starts that were refused because another one served. */
  readonly refused: number;
  readonly wrong: readonly string[];
}

/** Nodes that are started at the same moment. */
const rivals = 2;
/** To each of them in a cycle. */
const adds = 10;

const start = (folder: string) => RpcServer.start({ folder, env: apiOffline, within: inNamespace });

/** The host serves the rest, too, when its node does not open. */
const serves = async (server: RpcServer) => (await server.call("id")).ok;
/**
 * Not by some failure of the stores that two processes are in. Who holds the lock may not have
 * written its name yet.
 */
const isRefused = (server: RpcServer) => /it is in use by (process|another program)/.test(server.log());

/** In each cycle some start together, one more comes while one serves, and that one is killed. */
export async function namespaceCycles({ folder, cycles, report }: NamespaceOptions): Promise<NamespaceResult> {
  const contents = new Map<string, string>();
  const wrong: string[] = [];
  let refused = 0;
  for (let cycle = 1; cycle <= cycles && wrong.length === 0; cycle += 1) {
    const servers = await Promise.all(Array.from({ length: rivals }, () => start(folder)));
    try {
      const serving = await Promise.all(servers.map(serves));
      const count = serving.filter(Boolean).length;
      if (count !== 1) wrong.push(`${count} of ${rivals} nodes serve one folder`);
      if (servers.filter(isRefused).length !== rivals - count) wrong.push(`not the lock refuses: ${logsOf(servers)}`);
      await Promise.all(servers.map((server, at) => addTo(server, `${cycle} ${at}`, contents)));
      const late = await start(folder);
      servers.push(late);
      if (await serves(late)) wrong.push("one that comes later serves as well");
      else if (!isRefused(late)) wrong.push(`not the lock refuses: ${late.log()}`);
      refused += rivals - count + 1;
      report?.(`cycle ${cycle}: ${contents.size} adds answered, ${refused} starts refused`);
    } finally {
      await Promise.all(servers.map((server) => server.kill("SIGKILL")));
    }
  }
  await using last = await start(folder);
  if (!(await serves(last))) wrong.push(`nobody can serve any more: ${last.log()}`);
  else wrong.push(...(await lost(last, contents)));
  return { acknowledged: contents.size, refused, wrong };
}

const logsOf = (servers: readonly RpcServer[]) => servers.map((server) => server.log()).join("\n");

/** Keeps in mind what was answered with success. */
async function addTo(server: RpcServer, name: string, contents: Map<string, string>): Promise<void> {
  for (let count = 0; count < adds; count += 1) {
    const text = `${name} ${count}`;
    const answer = await server.call("add", { quieter: "true" }, { file: Buffer.from(text) });
    const told = await answer.text();
    if (answer.ok) contents.set((JSON.parse(told) as { Hash: string }).Hash, text);
  }
}

async function lost(server: RpcServer, contents: ReadonlyMap<string, string>): Promise<string[]> {
  const wrong: string[] = [];
  const answer = await server.call("pin/ls", { type: "recursive" });
  const { Keys } = (await answer.json()) as { Keys: Readonly<Record<string, unknown>> };
  for (const [cid, text] of contents) {
    if (!Object.hasOwn(Keys, cid)) wrong.push(`the pin of ${cid} is gone`);
    const read = await server.call("cat", { arg: cid, timeout: "20s" });
    const found = await read.text();
    if (found !== text) wrong.push(`cat of ${cid} gives ${read.status}: ${found}`);
  }
  return wrong;
}
