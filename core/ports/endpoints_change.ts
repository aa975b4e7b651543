/** Changes the endpoints that a provider itself names: new ones open before old ones close. */

import type { NetEndpoint } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { Open } from "./change.ts";
import { codeOf, endpointText } from "./listen.ts";

/** Operations on the endpoints of one service. */
interface OpenEndpoints {
  open(): readonly Open[];
  listen(endpoint: NetEndpoint): Promise<void>;
  /** Resolves when the address is free; connections stay open. */
  shut(open: Open): Promise<void>;
}

const keyOf = (endpoint: NetEndpoint): string =>
  "path" in endpoint ? endpoint.path : `${endpoint.address} ${endpoint.port}`;

/**
 * Opens new endpoints and closes old ones. If the system does not allow an address next to another
 * one with the same port, the old one is closed first.
 * @throws {Error} naming the endpoint: the previous state is restored then
 */
export async function changeEndpoints(wanted: readonly NetEndpoint[], ports: OpenEndpoints): Promise<void> {
  const next = new Set(wanted.map(keyOf));
  const before = ports.open().filter(({ endpoint }) => endpoint !== undefined);
  const had = new Set(before.map(({ endpoint }) => keyOf(endpoint as NetEndpoint)));
  const leaving = before.filter(({ endpoint }) => !next.has(keyOf(endpoint as NetEndpoint)));
  const closed: NetEndpoint[] = [];
  const shut = async (open: Open) => {
    leaving.splice(leaving.indexOf(open), 1);
    closed.push(open.endpoint as NetEndpoint);
    await ports.shut(open);
  };
  for (const endpoint of wanted.filter((each) => !had.has(keyOf(each)))) {
    try {
      await ports.listen(endpoint).catch(async (error: unknown) => {
        const inTheWay = leaving.filter(({ endpoint: other }) => hasPortOf(other, endpoint));
        if (codeOf(error) !== "EADDRINUSE" || inTheWay.length === 0) throw error;
        for (const open of inTheWay) await shut(open);
        await ports.listen(endpoint);
      });
    } catch (error) {
      for (const open of ports.open().filter((each) => each.endpoint !== undefined && !before.includes(each)))
        await ports.shut(open);
      for (const each of closed) await ports.listen(each);
      throw new Error(`Cannot listen on ${endpointText(endpoint)}: ${reasonOf(error)}`, { cause: error });
    }
  }
  for (const open of [...leaving]) await ports.shut(open);
}

function hasPortOf(one: NetEndpoint | undefined, other: NetEndpoint): boolean {
  return one !== undefined && "port" in one && "port" in other && one.port !== 0 && one.port === other.port;
}
