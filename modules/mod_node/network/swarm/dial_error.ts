/** Reports why a peer could not be reached, address by address, with go-ipfs's texts. */
import type { Transport } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import { failure, type NodeError } from "../../util/errors.ts";
import { type Multiaddr, transportOf } from "./multiaddr.ts";

/** The reason why one address could not be dialled. */
class AddressError extends Error {
  readonly address: Multiaddr;

  constructor(address: Multiaddr, cause: unknown) {
    super(`${address}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.address = address;
  }
}

/**
 * Makes a transport include the address in its errors, because libp2p reports an error without its
 * address.
 */
export function withAddressInErrors<T extends Transport>(transport: T): T {
  const { dial } = transport;
  transport.dial = async (address, options) => {
    try {
      return await dial.call(transport, address, options);
    } catch (error) {
      throw new AddressError(address, error);
    }
  };
  return transport;
}

/**
 * Returns the error `failed to dial <id>: …` for the errors of dials; without any errors, no
 * address was known.
 */
export function dialError(id: PeerId, errors: readonly unknown[]): NodeError {
  const failed = errors.flatMap((error): unknown[] => (error instanceof AggregateError ? error.errors : [error]));
  const addresses = failed.filter((each) => each instanceof AddressError);
  const text =
    addresses.length === 0
      ? ` ${failed.length === 0 ? "no addresses" : reasonOf(failed[0])}`
      : addresses.map(({ address, cause }) => `\n  * [${transportOf(address)}] ${causeOf(address, cause)}`).join("");
  return failure("PEER_UNREACHABLE", { reason: `failed to dial ${id}:${text}` }, errors[0]);
}

function reasonOf(error: unknown): string {
  const { name, message } = error as Error;
  if (name === "NoValidAddressesError" || name === "DialDeniedError") return "no good addresses";
  if (name === "TimeoutError" || name === "AbortError") return "context deadline exceeded";
  return message;
}

/** Go's texts for errors of the system. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  EADDRNOTAVAIL: "connect: cannot assign requested address",
  ETIMEDOUT: "connect: connection timed out",
  EACCES: "connect: permission denied",
};

function causeOf(address: Multiaddr, cause: unknown): string {
  const { code = "", name, message } = cause as NodeJS.ErrnoException;
  const system = SYSTEM_ERRORS[code];
  if (system !== undefined) return `dial ${goAddress(address)}: ${system}`;
  if (name === "TimeoutError" || name === "AbortError") return `dial ${goAddress(address)}: i/o timeout`;
  if (name === "EncryptionFailedError") return `failed to negotiate security protocol: ${securityWords(message)}`;
  if (name === "MuxerUnavailableError") return `failed to negotiate stream multiplexer: ${message}`;
  // Errors of Node's WebSockets have no message.
  return message || `dial ${goAddress(address)}: connection failed`;
}

const securityWords = (message: string): string =>
  /unexpected peer|does not match expected/i.test(message) ? "peer id mismatch" : message;

/** Formats an address as Go does when dialling it: `tcp4 127.0.0.1:1`. */
function goAddress(address: Multiaddr): string {
  const [host, port, ...more] = address.getComponents();
  const family = more.some(({ name }) => name === "ws" || name === "wss") ? "" : host?.name.replace(/\D/g, "");
  const name = host?.name === "ip6" ? `[${host.value}]` : host?.value;
  return `tcp${family} ${name}:${port?.value}`;
}
