/**
 * Nodes on one folder with separate process ids, as in containers: one serves, and loses nothing.
 */
import { inNamespace } from "#test/support/namespaces.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";

export interface NamespaceOptions {
  readonly folder: string;
  readonly cycles: number;
  readonly report?: (line: string) => void;
}

export interface NamespaceResult {
  /** Number of successful adds. */
  readonly acknowledged: number;
  /** Number of starts that were refused because another node serves. */
  readonly refused: number;
  readonly wrong: readonly string[];
}

/** Nodes that are started at the same time. */
const rivals = 2;
/** Number of files that are added to each node in a cycle. */
const adds = 10;

const start = (folder: string) => RpcServer.start({ folder, env: apiOffline, within: inNamespace });

/** A host whose node does not open still serves everything else. */
const serves = async (server: RpcServer) => (await server.call("id")).ok;
/**
 * Another failure would mean that two processes use the stores. The holder of the lock may not have
 * written its name yet.
 */
const isRefused = (server: RpcServer) => /it is in use by (process|another program)/.test(server.log());

/**
 * In each cycle several nodes start together, another starts while one serves, and the one that
 * serves is killed.
 */
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
      if (servers.filter(isRefused).length !== rivals - count)
        wrong.push(`the refusal does not come from the lock: ${logsOf(servers)}`);
      await Promise.all(servers.map((server, at) => addTo(server, `${cycle} ${at}`, contents)));
      const late = await start(folder);
      servers.push(late);
      if (await serves(late)) wrong.push("a node that starts later serves as well");
      else if (!isRefused(late)) wrong.push(`the refusal does not come from the lock: ${late.log()}`);
      refused += rivals - count + 1;
      report?.(`cycle ${cycle}: ${contents.size} successful adds, ${refused} starts refused`);
    } finally {
      await Promise.all(servers.map((server) => server.kill("SIGKILL")));
    }
  }
  await using last = await start(folder);
  if (!(await serves(last))) wrong.push(`no node can serve anymore: ${last.log()}`);
  else wrong.push(...(await lost(last, contents)));
  return { acknowledged: contents.size, refused, wrong };
}

const logsOf = (servers: readonly RpcServer[]) => servers.map((server) => server.log()).join("\n");

/** Adds files, and records the successful ones. */
async function addTo(server: RpcServer, name: string, contents: Map<string, string>): Promise<void> {
  for (let count = 0; count < adds; count += 1) {
    const text = `${name} ${count}`;
    const response = await server.call("add", { quieter: "true" }, { file: Buffer.from(text) });
    const output = await response.text();
    if (response.ok) contents.set((JSON.parse(output) as { Hash: string }).Hash, text);
  }
}

async function lost(server: RpcServer, contents: ReadonlyMap<string, string>): Promise<string[]> {
  const wrong: string[] = [];
  const response = await server.call("pin/ls", { type: "recursive" });
  const { Keys } = (await response.json()) as { Keys: Readonly<Record<string, unknown>> };
  for (const [cid, text] of contents) {
    if (!Object.hasOwn(Keys, cid)) wrong.push(`the pin of ${cid} is gone`);
    const read = await server.call("cat", { arg: cid, timeout: "20s" });
    const found = await read.text();
    if (found !== text) wrong.push(`cat of ${cid} gives ${read.status}: ${found}`);
  }
  return wrong;
}
