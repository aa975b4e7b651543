/** A change of the endpoints that a provider itself names: the new ones open before the old ones close. */

import type { NetEndpoint } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { Open } from "./change.ts";
import { codeOf, placeText } from "./listen.ts";

/** The endpoints of one service. */
interface OpenEndpoints {
  open(): readonly Open[];
  listen(endpoint: NetEndpoint): Promise<void>;
  /** Resolves when the address is free; connections go on. */
  shut(open: Open): Promise<void>;
}

const keyOf = (endpoint: NetEndpoint): string =>
  "path" in endpoint ? endpoint.path : `${endpoint.address} ${endpoint.port}`;

/**
 * Opens what comes and closes what goes; what stays is not touched. Where the system does not let one address be opened
 * beside another of the same port, the old one is closed first.
 * @throws {Error} naming the endpoint: everything is what it was before then
 */
export async function changeEndpoints(wanted: readonly NetEndpoint[], ports: OpenEndpoints): Promise<void> {
  const next = new Set(wanted.map(keyOf));
  const former = ports.open().filter(({ endpoint }) => endpoint !== undefined);
  const had = new Set(former.map(({ endpoint }) => keyOf(endpoint as NetEndpoint)));
  const leaving = former.filter(({ endpoint }) => !next.has(keyOf(endpoint as NetEndpoint)));
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
      for (const open of ports.open().filter((each) => each.endpoint !== undefined && !former.includes(each)))
        await ports.shut(open);
      for (const each of closed) await ports.listen(each);
      throw new Error(`${placeText(endpoint)} is not listened on: ${reasonOf(error)}`, { cause: error });
    }
  }
  for (const open of [...leaving]) await ports.shut(open);
}

function hasPortOf(one: NetEndpoint | undefined, other: NetEndpoint): boolean {
  return one !== undefined && "port" in one && "port" in other && one.port !== 0 && one.port === other.port;
}
