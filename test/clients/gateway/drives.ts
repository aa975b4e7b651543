/** What is done with clients of the gateway, each on a server of its own, of which they know the address alone. */
import { startGateway } from "#test/contract/gateway/server.ts";
import { LoopbackOnly } from "#test/support/loopback_only.ts";
import { startRoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";
import type { NamedDrive } from "../drives.ts";
import { heliaOverHttp } from "./helia.ts";
import { type GatewayLibraries, gatewayLibraries } from "./libraries.ts";
import { routingClient } from "./routing_client.ts";
import { verifiedFetch } from "./verified_fetch.ts";

type Lines = ReturnType<NamedDrive["run"]>;

export const gatewayDrives: readonly NamedDrive[] = [
  named("@helia/verified-fetch", async function* (libraries) {
    await using server = await startGateway();
    yield* verifiedFetch(libraries, server.url);
  }),
  named("@helia/http", async function* (libraries) {
    await using pair = await startRoutingPair();
    yield* heliaOverHttp(libraries, pair);
  }),
  named("@helia/delegated-routing-v1-http-api-client", async function* (libraries) {
    await using pair = await startRoutingPair();
    yield* routingClient(libraries, pair);
  }),
];

function named(name: string, drive: (libraries: GatewayLibraries) => Lines): NamedDrive {
  return {
    name,
    async *run() {
      const libraries = await gatewayLibraries();
      using guard = new LoopbackOnly();
      yield* drive(libraries);
      guard.check();
    },
  };
}
