/** What requests have added up to, in one flat row of numbers: rows are summed, and taken from each other. */
import { latencyBounds, type RouteCounts } from "../../../core/http/index.ts";

export const REQUESTS = 0;
export const ERRORS = 1;
export const RECEIVED = 2;
export const SENT = 3;
const BUCKETS = 4;
/** Numbers in a row. */
export const WIDTH = BUCKETS + latencyBounds.length + 1;

/** Of answers with 500 and more. */
const SERVER_ERRORS = 5;

/** A row of `WIDTH` numbers. */
export type Tally = Float64Array;

export const emptyTally = (): Tally => new Float64Array(WIDTH);

/** What a route has done so far. */
export function tallyOf({ classes, received, sent, latencies }: RouteCounts): Tally {
  const tally = emptyTally();
  for (const requests of classes) tally[REQUESTS] = at(tally, REQUESTS) + requests;
  tally[ERRORS] = at(classes, SERVER_ERRORS);
  tally[RECEIVED] = received;
  tally[SENT] = sent;
  tally.set(latencies, BUCKETS);
  return tally;
}

/** Adds to a row; `sign` -1 takes away. */
export function add(to: Tally, other: ArrayLike<number>, sign: 1 | -1 = 1): void {
  for (let index = 0; index < WIDTH; index += 1) to[index] = at(to, index) + sign * at(other, index);
}

/** The latency that so many of the requests did not exceed, seconds, as near as the buckets tell; undefined without any. */
export function percentile(tally: ArrayLike<number>, share: number): number | undefined {
  let total = 0;
  for (let index = BUCKETS; index < WIDTH; index += 1) total += at(tally, index);
  if (total === 0) return undefined;
  let left = total * share;
  let lower = 0;
  for (const [bucket, upper] of latencyBounds.entries()) {
    const count = at(tally, BUCKETS + bucket);
    if (count >= left) return lower + (count === 0 ? 0 : (left / count) * (upper - lower));
    left -= count;
    lower = upper;
  }
  return lower;
}

function at(numbers: ArrayLike<number>, index: number): number {
  return numbers[index] as number;
}
