/**
 * Combines several routers into one that queries them in parallel or sequentially, as
 * `Routing.Routers` of Kubo's configuration defines.
 */
import { setTimeout as delay } from "node:timers/promises";
import { merge } from "../../util/async/merge.ts";
import { failure } from "../../util/errors.ts";
import { formatDuration } from "../../util/go/duration.ts";
import { eventTypes, type RoutingEvent, type RoutingEvents } from "../kad/events.ts";
import { type Method, methods, type QueryOptions, type Router, type RouterQuery } from "./router.ts";

export interface Member {
  readonly router: Router;
  /** True: errors of this router only count if no other member has a result. */
  readonly ignoreErrors?: boolean;
  /** Timeout in milliseconds; 0 for no limit. */
  readonly timeoutMs?: number;
  /** Milliseconds to wait before it is queried, in a parallel router. */
  readonly delayMs?: number;
}

/**
 * The event type that counts as a result of each method, and whether one result is enough. Storing
 * and announcing succeed when they end without an error.
 */
const results: Readonly<Record<Method, { readonly type?: RoutingEvent["type"]; readonly isLast?: boolean }>> = {
  findProviders: { type: eventTypes.provider },
  findPeer: { type: eventTypes.finalPeer, isLast: true },
  search: { type: eventTypes.value },
  put: {},
  provide: {},
};

type AnyQuery = RouterQuery<unknown>;
type CapableMember = Member & { readonly ask: AnyQuery };
type Strategy = (
  method: Method,
  capable: readonly CapableMember[],
  query: unknown,
  options: QueryOptions,
) => RoutingEvents;

/**
 * Milliseconds that other members have left after one has finished its search for records with a
 * result.
 */
const LATE_MS = 2000;

/**
 * Queries all members at once. When one has finished its search for records with a result, the
 * others have two seconds left. An error is thrown after all have finished, if there is no result.
 * Storing and announcing also fail if a member fails whose errors count.
 */
export const parallel = (members: readonly Member[], timeoutMs = 0): Router => combined(members, timeoutMs, atOnce);

/**
 * Queries members in order: for a peer or a record until one has a result, otherwise all of them.
 * The failure of a member whose errors count ends the query.
 */
export const sequential = (members: readonly Member[], timeoutMs = 0): Router => combined(members, timeoutMs, inOrder);

/** Each method queries the members that implement it. */
function combined(members: readonly Member[], timeoutMs: number, strategy: Strategy): Router {
  const asks = methods.flatMap((method): [Method, AnyQuery][] => {
    const capable = members.flatMap((member): CapableMember[] => {
      const ask = member.router[method] as AnyQuery | undefined;
      return ask === undefined ? [] : [{ ...member, ask }];
    });
    if (capable.length === 0) return [];
    return [[method, (query, options) => within(timeoutMs, options, (own) => strategy(method, capable, query, own))]];
  });
  const canProvide = () => members.some(({ router }) => router.canProvide?.() === true);
  return { ...(Object.fromEntries(asks) as Router), canProvide };
}

async function* atOnce(
  method: Method,
  capable: readonly CapableMember[],
  query: unknown,
  options: QueryOptions,
): RoutingEvents {
  const progress = new QueryProgress(method);
  const ending = new AbortController();
  const own = { ...options, signal: AbortSignal.any([options.signal, ending.signal]) };
  let late: NodeJS.Timeout | undefined;
  const streams = capable.map(async function* (member) {
    yield* progress.watch(member, query, own);
    if (method === "search" && progress.hasResult) late ??= setTimeout(() => ending.abort(), LATE_MS);
  });
  try {
    for await (const event of merge(streams, () => ending.abort())) {
      yield event;
      if (progress.isOver) return;
    }
  } finally {
    clearTimeout(late);
  }
  options.signal.throwIfAborted();
  progress.end();
}

async function* inOrder(
  method: Method,
  capable: readonly CapableMember[],
  query: unknown,
  options: QueryOptions,
): RoutingEvents {
  const progress = new QueryProgress(method);
  for (const { delayMs: _, ...member } of capable) {
    for await (const event of progress.watch(member, query, options)) {
      yield event;
      if (progress.isOver) return;
    }
    options.signal.throwIfAborted();
    if (progress.failure !== undefined || (method === "search" && progress.hasResult)) break;
  }
  progress.end();
}

/** Tracks the results and errors of one query. */
class QueryProgress {
  /** Error of the first member whose errors count. */
  failure: unknown;
  hasResult = false;
  readonly #result: (typeof results)[Method];
  #queried = 0;
  readonly #ignored: unknown[] = [];

  constructor(method: Method) {
    this.#result = results[method];
  }

  get isOver(): boolean {
    return this.hasResult && this.#result.isLast === true;
  }

  /** Yields the events of one member, and records its error. */
  async *watch({ ask, delayMs = 0, ...member }: CapableMember, query: unknown, options: QueryOptions): RoutingEvents {
    const { signal } = options;
    this.#queried += 1;
    try {
      if (delayMs > 0) await delay(delayMs, undefined, { signal, ref: false });
      for await (const event of within(member.timeoutMs ?? 0, options, (own) => ask(query, own))) {
        if (event.type === this.#result.type) this.hasResult = true;
        yield event;
      }
      if (this.#result.type === undefined) this.hasResult = true;
    } catch (error) {
      // The query, or the wait for this member, is over.
      if (signal.aborted) return;
      if (member.ignoreErrors === true) this.#ignored.push(error);
      else this.failure ??= error;
    }
  }

  /** @throws the error that the caller has to get */
  end(): void {
    if (this.failure !== undefined && !(this.hasResult && this.#result.type !== undefined)) throw this.failure;
    if (!this.hasResult && this.#ignored.length === this.#queried) throw this.#ignored[0];
  }
}

/** @throws NodeError after the timeout */
async function* within(
  timeoutMs: number,
  options: QueryOptions,
  ask: (options: QueryOptions) => RoutingEvents,
): RoutingEvents {
  if (timeoutMs <= 0) return yield* ask(options);
  const { signal } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  const late = (cause?: unknown) =>
    failure("ROUTER_FAILED", { reason: `no response within ${formatDuration(timeoutMs)}` }, cause);
  try {
    yield* ask({ ...options, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (limit.aborted && !signal.aborted) throw late(error);
    throw error;
  }
}
