/** All that is done with the client libraries, each on a server of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Rpc } from "#test/support/network/rpc.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { type Drive, drive } from "./drive.ts";
import { everyMethod } from "./every.ts";
import { clients } from "./libraries.ts";
import { byPlainHttp } from "./plain.ts";

const token = "a-token";
const pinningFor = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_pinning",
  MODHOST_PINNING_TOKENS: JSON.stringify([token]),
};

type Lines = AsyncGenerator<string, void, undefined>;

export interface NamedDrive {
  readonly name: string;
  /** Throws when something is not right; gives what was done, a line each. */
  run(): Lines;
}

export function drives(size: Drive): NamedDrive[] {
  const ofClients = Object.entries(clients).flatMap(([name, create]) => [
    {
      name,
      run: () =>
        withServer(async function* (url) {
          yield* drive(await create(url), size);
        }),
    },
    {
      name: `${name}, every method`,
      run: () =>
        withServer(
          (url) =>
            withServer(async function* (far) {
              const other = await Rpc.of("other", far);
              const pinning = { endpoint: `${far}/pinning`, token };
              yield* everyMethod(await create(url), { other, pinning });
            }, pinningFor),
          { MODHOST_API_PUBSUB_WIRE: "multibase" },
        ),
    },
  ]);
  return [...ofClients, { name: "no library", run: () => withServer(byPlainHttp) }];
}

async function* withServer(run: (url: string) => Lines, env: NodeJS.ProcessEnv = {}): Lines {
  const folder = await mkdtemp(join(tmpdir(), "modhost-clients-"));
  try {
    await using server = await RpcServer.start({ folder, env });
    yield* run(server.url);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
