/** Cutting what is more than may be sent at once. */
import { RPC } from "@libp2p/gossipsub/message";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { MAX_RPC_SIZE } from "./limits.ts";

/**
 * Messages of a long RPC in several, each behind its length as on the wire: libp2p answers a peer that asks for many
 * messages with one. `rpc` is the long one behind its length.
 */
export function splitRpc(rpc: Uint8Array): readonly Uint8Array[] {
  const { messages, ...rest } = RPC.decode(rpc.subarray(lengthOfLength(rpc)));
  const parts: RPC[] = [{ ...rest, messages: [] }];
  let bytes = RPC.encode(parts[0] as RPC).length;
  for (const message of messages) {
    const length = RPC.encode({ subscriptions: [], messages: [message] }).length;
    if (bytes > 0 && bytes + length > MAX_RPC_SIZE) {
      parts.push({ subscriptions: [], messages: [] });
      bytes = 0;
    }
    parts.at(-1)?.messages.push(message);
    bytes += length;
  }
  return parts.map((part) => lengthPrefixed(RPC.encode(part)));
}

function lengthOfLength(framed: Uint8Array): number {
  let at = 0;
  while ((framed[at] as number) >= 0x80) at += 1;
  return at + 1;
}

/** Bytes behind their length. */
export function lengthPrefixed(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(varintLength(bytes.length) + bytes.length);
  writeVarint(whole, 0, bytes.length);
  whole.set(bytes, whole.length - bytes.length);
  return whole;
}
