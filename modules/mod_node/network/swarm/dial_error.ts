/** Why a peer could not be reached, in the words of go-ipfs: address by address. */
import type { Transport } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";
import { type Multiaddr, transportOf } from "./multiaddr.ts";

/** Why one address could not be dialled. */
class AddressError extends Error {
  readonly address: Multiaddr;

  constructor(address: Multiaddr, cause: unknown) {
    super(`${address}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.address = address;
  }
}

/** Has a transport name the address in its errors: libp2p tells what failed, but not with which address. */
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

/** `failed to dial <id>: …`, from what dials rejected with; without any, no address was known. */
export function dialError(id: PeerId, errors: readonly unknown[]): NodeError {
  const failed = errors.flatMap((error): unknown[] => (error instanceof AggregateError ? error.errors : [error]));
  const addresses = failed.filter((each) => each instanceof AddressError);
  const text =
    addresses.length === 0
      ? ` ${failed.length === 0 ? "no addresses" : reasonOf(failed[0])}`
      : addresses.map(({ address, cause }) => `\n  * [${transportOf(address)}] ${causeOf(address, cause)}`).join("");
  return new NodeError(`failed to dial ${id}:${text}`, { cause: errors[0] });
}

function reasonOf(error: unknown): string {
  const { name, message } = error as Error;
  if (name === "NoValidAddressesError" || name === "DialDeniedError") return "no good addresses";
  if (name === "TimeoutError" || name === "AbortError") return "context deadline exceeded";
  return message;
}

/** Go's words for errors of the system. */
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
  // Errors of Node's websockets have no message.
  return message || `dial ${goAddress(address)}: connection failed`;
}

const securityWords = (message: string): string =>
  /unexpected peer|does not match expected/i.test(message) ? "peer id mismatch" : message;

/** As Go writes an address that it dials: `tcp4 127.0.0.1:1`. */
function goAddress(address: Multiaddr): string {
  const [host, port, ...more] = address.getComponents();
  const family = more.some(({ name }) => name === "ws" || name === "wss") ? "" : host?.name.replace(/\D/g, "");
  const name = host?.name === "ip6" ? `[${host.value}]` : host?.value;
  return `tcp${family} ${name}:${port?.value}`;
}
