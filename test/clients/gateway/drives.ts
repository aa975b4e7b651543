/** All runs of clients of the gateway. Each has a server of its own and knows only its address. */
import { startGateway } from "#test/contract/gateway/server.ts";
import { LoopbackOnly } from "#test/support/loopback_only.ts";
import { type RoutingPair, startRoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";
import type { NamedDrive } from "../drives.ts";
import { snippetsOfGuide } from "./guide.ts";
import { heliaOverHttp } from "./helia.ts";
import { kuboBothWays } from "./kubo.ts";
import { type GatewayLibraries, gatewayLibraries } from "./libraries.ts";
import { routingClient } from "./routing_client.ts";
import { verifiedFetch } from "./verified_fetch.ts";

type Lines = ReturnType<NamedDrive["run"]>;

export const gatewayDrives: readonly NamedDrive[] = [
  guarded("@helia/verified-fetch", async function* () {
    const libraries = await gatewayLibraries();
    await using server = await startGateway();
    yield* verifiedFetch(libraries, server.url);
  }),
  guarded("@helia/http", () => withPair(heliaOverHttp)),
  guarded("@helia/delegated-routing-v1-http-api-client", () => withPair(routingClient)),
  guarded("@helia, with the code of the guide", () => withPair((_, pair) => snippetsOfGuide(pair))),
  guarded("Kubo", kuboBothWays),
];

async function* withPair(drive: (libraries: GatewayLibraries, pair: RoutingPair) => Lines): Lines {
  const libraries = await gatewayLibraries();
  await using pair = await startRoutingPair();
  yield* drive(libraries, pair);
}

function guarded(name: string, drive: () => Lines): NamedDrive {
  return {
    name,
    async *run() {
      using guard = new LoopbackOnly();
      yield* drive();
      guard.check();
    },
  };
}
