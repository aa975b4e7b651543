/** A gateway over a node of the test, and requests that are sent unchanged. */

import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request } from "node:http";
import { join } from "node:path";
import type { Node } from "#node/index.ts";
import { createNode } from "#node/index.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { startHost, type TestHost } from "#test/support/host.ts";

export interface GatewayResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Whether the response broke off. */
  readonly cut: boolean;
}

export interface GatewayHost extends TestHost {
  ask(path: string, headers?: Readonly<Record<string, string>>, method?: string): Promise<GatewayResponse>;
}

/** @param fill adds content to the node before the host opens its repo */
export async function startGatewayWith(
  fill: (node: Node) => Promise<unknown>,
  config: Readonly<Record<string, unknown>> = {},
): Promise<GatewayHost> {
  const host = await startHost({
    async prepare(folder) {
      await using node = await createNode({ repo: join(folder, "data", "repo"), offline: true });
      await fill(node);
    },
    config: { modules_enabled: ["http", "http_gateway"], https_ports: [], node_offline: true, ...config },
  });
  return Object.assign(host, {
    ask: (path: string, headers = {}, method = "GET") => askAt(host.http, path, headers, method),
  });
}

/** Sends the path as it is written, and does not follow redirects. */
export async function askAt(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  method: string,
): Promise<GatewayResponse> {
  const outgoing = request({ port, host: "127.0.0.1", path, method, headers: { connection: "close", ...headers } });
  outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  let body = "";
  let cut = false;
  try {
    for await (const piece of incoming.setEncoding("utf8")) body += piece;
  } catch {
    cut = true;
  }
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body, cut: cut || !incoming.complete };
}

/** Creates the repo of a host that has not started yet, with a gateway at its own address. */
export async function prepareRepo(folder: string): Promise<void> {
  const repo = await openRepo(join(folder, "data", "repo"), { profile: "local" });
  await repo.config.set("Addresses.Gateway", () => "/ip4/127.0.0.1/tcp/0");
  await repo.close();
}
