/** Bodies whose first bytes are read before the answer begins, so that what prevents them has a status. */
import type { PooledBody } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";

type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

/** For HEAD no more is read. `release` takes back a piece that was sent. */
export async function begun(
  { request, reading }: Asked,
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
