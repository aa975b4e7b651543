/** Changes the ports for another configuration: new ones open before old ones close. */
import type { Server } from "node:net";
import type { NetEndpoint } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { BindAddress, BindAddressDifference } from "./bind_addresses.ts";
import { codeOf } from "./listen.ts";

/**
 * A listening socket, and the address in the options that it was opened for; undefined for further
 * endpoints.
 */
export interface Open {
  readonly server: Server;
  readonly bindAddress: BindAddress | undefined;
  /** Set for a further endpoint. */
  readonly endpoint?: NetEndpoint | undefined;
  /** Set for a socket that another process has opened. */
  readonly key?: string;
  /** Whether another process may continue to listen on it. */
  readonly isShared?: boolean;
}

/** The ports that a change of the configuration opens and closes for one service. */
export interface PortsDifference extends BindAddressDifference {
  readonly service: string;
  /** The actual port numbers of `closed`. */
  readonly bound: readonly number[];
}

/** A change after its new ports were opened and before its old ones are closed. */
export interface PortsChange {
  /** Closes ports that are no longer needed; connections stay open. */
  commit(): void;
  /** Restores the previous state. */
  undo(): Promise<void>;
}

/** Operations on the ports of services, by name. */
interface OpenPorts {
  open(service: string): readonly Open[];
  /** Resolves to undefined if this machine does not have the address. */
  listen(service: string, bindAddress: BindAddress): Promise<Open | undefined>;
  /** Resolves when the address is free. */
  shut(service: string, open: Open): Promise<void>;
}

/**
 * Opens all new ports. If the system does not allow an address next to an open one ("*" next to
 * 127.0.0.1, with the same port), the old one is closed first.
 * @throws {ModhostError} PORT_TAKEN, PORT_FORBIDDEN, PORT_UNAVAILABLE: the previous state is
 * restored then
 */
export async function changePorts(found: readonly PortsDifference[], ports: OpenPorts): Promise<PortsChange> {
  const opened: [string, Open][] = [];
  const closed: [string, BindAddress][] = [];
  const undo = async () => {
    for (const [service, open] of opened) await ports.shut(service, open);
    for (const [service, bindAddress] of closed) await ports.listen(service, bindAddress);
  };
  /** Returns the ports that are still open and will be closed. */
  const leaving = () =>
    found.flatMap(({ service, closed: bindAddresses }) =>
      ports
        .open(service)
        .filter(({ bindAddress }) => bindAddress !== undefined && bindAddresses.includes(bindAddress))
        .map((open) => [service, open] as const),
    );
  const listen = async (service: string, bindAddress: BindAddress) => {
    const open = await ports.listen(service, bindAddress);
    if (open !== undefined) opened.push([service, open]);
  };
  try {
    for (const { service, opened: bindAddresses } of found) {
      for (const bindAddress of bindAddresses) {
        try {
          await listen(service, bindAddress);
        } catch (error) {
          const inTheWay =
            bindAddress.port === 0 ? [] : leaving().filter(([, open]) => open.bindAddress?.port === bindAddress.port);
          if (causeOf(error) !== "EADDRINUSE" || inTheWay.length === 0) throw error;
          for (const [other, open] of inTheWay) {
            await ports.shut(other, open);
            closed.push([other, open.bindAddress as BindAddress]);
          }
          await listen(service, bindAddress);
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

/** Returns the system's code for a port that could not be opened. */
function causeOf(error: unknown): unknown {
  return codeOf(ModhostError.is(error) ? error.cause : error);
}
