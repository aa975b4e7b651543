/** Totals of requests as a flat row of numbers. Rows can be added and subtracted. */
import { latencyBounds, type RouteCounts } from "../../../core/http/index.ts";

export const REQUESTS = 0;
export const ERRORS = 1;
export const RECEIVED = 2;
export const SENT = 3;
const BUCKETS = 4;
/** Number of elements in a row. */
export const WIDTH = BUCKETS + latencyBounds.length + 1;

/** Index of the responses with status 500 and above. */
const SERVER_ERRORS = 5;

/** A row of `WIDTH` numbers. */
export type Tally = Float64Array;

export const emptyTally = (): Tally => new Float64Array(WIDTH);

/** Returns the totals of a route so far. */
export function tallyOf({ classes, received, sent, latencies }: RouteCounts): Tally {
  const tally = emptyTally();
  for (const requests of classes) tally[REQUESTS] = at(tally, REQUESTS) + requests;
  tally[ERRORS] = at(classes, SERVER_ERRORS);
  tally[RECEIVED] = received;
  tally[SENT] = sent;
  tally.set(latencies, BUCKETS);
  return tally;
}

/** Adds a row to another. A `sign` of -1 subtracts it. */
export function add(to: Tally, other: ArrayLike<number>, sign: 1 | -1 = 1): void {
  for (let index = 0; index < WIDTH; index += 1) to[index] = at(to, index) + sign * at(other, index);
}

/**
 * Returns the latency, in seconds, that this share of the requests did not exceed, as precisely as
 * the buckets allow; undefined without requests.
 */
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
