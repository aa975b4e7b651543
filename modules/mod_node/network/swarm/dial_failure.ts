/** Why a peer could not be reached, as the reference tells it: address by address. */
import type { Transport } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";
import { type Multiaddr, transportOf } from "./multiaddr.ts";

/** What became of one address. */
class DialFailure extends Error {
  readonly address: Multiaddr;

  constructor(address: Multiaddr, cause: unknown) {
    super(`${address}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.address = address;
  }
}

/** libp2p tells what went wrong, but not with which address: this transport does. */
export function withAddressInErrors<T extends Transport>(transport: T): T {
  const { dial } = transport;
  transport.dial = async (address, options) => {
    try {
      return await dial.call(transport, address, options);
    } catch (error) {
      throw new DialFailure(address, error);
    }
  };
  return transport;
}

/** `failed to dial <id>: …` of whatever a dial rejected with. */
export function dialError(id: PeerId, error: unknown): NodeError {
  const failed = error instanceof AggregateError ? error.errors : [error];
  const addresses = failed.filter((each) => each instanceof DialFailure);
  const text =
    addresses.length === 0
      ? ` ${reasonOf(error)}`
      : addresses.map(({ address, cause }) => `\n  * [${transportOf(address)}] ${causeOf(address, cause)}`).join("");
  return new NodeError(`failed to dial ${id}:${text}`, { cause: error });
}

function reasonOf(error: unknown): string {
  const { name, message } = error as Error;
  if (name === "NoValidAddressesError" || name === "DialDeniedError") return "no good addresses";
  if (name === "TimeoutError" || name === "AbortError") return "context deadline exceeded";
  return message;
}

/** Go's words for what the system says. */
const systemWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  EADDRNOTAVAIL: "connect: cannot assign requested address",
  ETIMEDOUT: "connect: connection timed out",
  EACCES: "connect: permission denied",
};

function causeOf(address: Multiaddr, cause: unknown): string {
  const { code = "", name, message } = cause as NodeJS.ErrnoException;
  const system = systemWords[code];
  if (system !== undefined) return `dial ${dialled(address)}: ${system}`;
  if (name === "TimeoutError" || name === "AbortError") return `dial ${dialled(address)}: i/o timeout`;
  if (name === "EncryptionFailedError") return `failed to negotiate security protocol: ${securityWords(message)}`;
  if (name === "MuxerUnavailableError") return `failed to negotiate stream multiplexer: ${message}`;
  // Node's websockets keep their reasons to themselves.
  return message || `dial ${dialled(address)}: connection failed`;
}

const securityWords = (message: string): string =>
  /unexpected peer|does not match expected/i.test(message) ? "peer id mismatch" : message;

/** `tcp4 127.0.0.1:1`. */
function dialled(address: Multiaddr): string {
  const [host, port, ...more] = address.getComponents();
  const family = more.some(({ name }) => name === "ws" || name === "wss") ? "" : host?.name.replace(/\D/g, "");
  const name = host?.name === "ip6" ? `[${host.value}]` : host?.value;
  return `tcp${family} ${name}:${port?.value}`;
}
