/** A change of the ports by another configuration: the new ones open before the old ones close. */
import type { Server } from "node:net";
import type { NetEndpoint } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { codeOf } from "./listen.ts";
import type { Place, PlaceDifference } from "./places.ts";

/** A socket that listens, and the place that the options asked for; undefined for further endpoints. */
export interface Open {
  readonly server: Server;
  readonly place: Place | undefined;
  /** Of a further endpoint. */
  readonly endpoint?: NetEndpoint | undefined;
  /** Of one that another process has opened. */
  readonly key?: string;
}

/** What a change of the configuration opens and closes, of one service. */
export interface PortsDifference extends PlaceDifference {
  readonly service: string;
  /** The ports of `closed`, as they are bound. */
  readonly bound: readonly number[];
}

/** A change of the ports whose new ones are open, and whose old ones are, too. */
export interface PortsChange {
  /** Closes what is no longer asked for; connections go on. */
  commit(): void;
  /** Makes everything what it was before. */
  undo(): Promise<void>;
}

/** The ports of services, by name. */
interface OpenPorts {
  open(service: string): readonly Open[];
  /** Undefined where this machine lacks the address. */
  listen(service: string, place: Place): Promise<Open | undefined>;
  /** Resolves when the address is free. */
  shut(service: string, open: Open): Promise<void>;
}

/**
 * Opens all that comes. Where the system does not let one address be opened beside another ("*" beside 127.0.0.1, of one
 * port), the old one is closed first.
 * @throws {ModhostError} PORT_TAKEN, PORT_FORBIDDEN, PORT_UNAVAILABLE: everything is what it was before then
 */
export async function changePorts(found: readonly PortsDifference[], ports: OpenPorts): Promise<PortsChange> {
  const opened: [string, Open][] = [];
  const closed: [string, Place][] = [];
  const undo = async () => {
    for (const [service, open] of opened) await ports.shut(service, open);
    for (const [service, place] of closed) await ports.listen(service, place);
  };
  /** Those that are still open, and are to close. */
  const leaving = () =>
    found.flatMap(({ service, closed: places }) =>
      ports
        .open(service)
        .filter(({ place }) => place !== undefined && places.includes(place))
        .map((open) => [service, open] as const),
    );
  const listen = async (service: string, place: Place) => {
    const open = await ports.listen(service, place);
    if (open !== undefined) opened.push([service, open]);
  };
  try {
    for (const { service, opened: places } of found) {
      for (const place of places) {
        try {
          await listen(service, place);
        } catch (error) {
          const inTheWay = place.port === 0 ? [] : leaving().filter(([, open]) => open.place?.port === place.port);
          if (causeOf(error) !== "EADDRINUSE" || inTheWay.length === 0) throw error;
          for (const [other, open] of inTheWay) {
            await ports.shut(other, open);
            closed.push([other, open.place as Place]);
          }
          await listen(service, place);
        }
      }
    }
  } catch (error) {
    await undo();
    throw error;
  }
  const commit = () => {
    for (const [service, open] of leaving()) void ports.shut(service, open);
  };
  return { commit, undo };
}

/** What the system said of a port that could not be opened. */
function causeOf(error: unknown): unknown {
  return codeOf(ModhostError.is(error) ? error.cause : error);
}
