/** All runs of client libraries, each on a server of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import { type DriveSizes, drive } from "./drive.ts";
import { clients } from "./libraries.ts";
import { everyMethod } from "./parity.ts";
import { byPlainHttp } from "./plain.ts";

type Lines = AsyncGenerator<string, void, undefined>;

export interface NamedDrive {
  readonly name: string;
  /** Throws when something is wrong, and yields a line for each thing that was done. */
  run(): Lines;
}

/** `everyMethodOf`: the clients of which every method is called, which takes ten times as long. */
export function drives(size: DriveSizes, everyMethodOf: readonly string[] = Object.keys(clients)): NamedDrive[] {
  const ofClients = Object.entries(clients).map(([name, create]) => ({
    name,
    run: () =>
      withServer(async function* (url) {
        yield* drive(await create(url), size);
      }),
  }));
  const ofMethods = Object.entries(clients)
    .filter(([name]) => everyMethodOf.includes(name))
    .map(([name, create]) => ({
      name: `${name}, every method over HTTP at the level 0.9 and at the level 0.43, and in process`,
      run: () => everyMethod(name, create),
    }));
  return [...ofClients, ...ofMethods, { name: "no library", run: () => withServer(byPlainHttp) }];
}

async function* withServer(run: (url: string) => Lines): Lines {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    await using server = await RpcServer.start({ folder, env: apiOffline });
    yield* run(server.url);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
