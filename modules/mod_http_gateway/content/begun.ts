/**
 * Reads the first bytes of a body before the response begins, so that an error still gets a status.
 */
import type { PooledBody } from "../../../core/types.ts";
import type { GatewayCall } from "../gateway_call.ts";

type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

/** Stops reading for HEAD. `release` returns a sent piece to its pool. */
export async function begun(
  { request, reading }: GatewayCall,
  pieces: Pieces,
  release?: (piece: Uint8Array) => void,
): Promise<PooledBody> {
  if (request.method === "HEAD") {
    await pieces.return();
    return reading.body(nothing());
  }
  const first = await pieces.next();
  return reading.body(first.done === true ? nothing() : joined(first.value, pieces), { release });
}

export async function* joined(first: Uint8Array, rest: Pieces): Pieces {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return();
  }
}

async function* nothing(): Pieces {}
