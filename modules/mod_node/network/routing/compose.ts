/** Several routers as one, all at once or one after the other, as `Routing.Routers` of Kubo's configuration has them. */
import { setTimeout as delay } from "node:timers/promises";
import { merge } from "../../util/async/merge.ts";
import { NodeError } from "../../util/errors.ts";
import { formatDuration } from "../../util/go/duration.ts";
import { eventTypes, type RoutingEvent, type RoutingEvents } from "../kad/events.ts";
import { type Ask, type Asking, type Method, methods, type Router } from "./router.ts";

export interface Member {
  readonly router: Router;
  /** Its failure counts only where no other has an answer. */
  readonly ignoreErrors?: boolean;
  /** Milliseconds in which it has to be through; 0 for any time. */
  readonly timeoutMs?: number;
  /** Milliseconds after which it begins, where all are asked at once. */
  readonly delayMs?: number;
}

/** What counts as an answer, and whether it is the only one. Storing and announcing are answered by their end. */
const answers: Readonly<Record<Method, { readonly type?: RoutingEvent["type"]; readonly isLast?: boolean }>> = {
  findProviders: { type: eventTypes.provider },
  findPeer: { type: eventTypes.finalPeer, isLast: true },
  search: { type: eventTypes.value },
  put: {},
  provide: {},
};

type AnyAsk = Ask<unknown>;
type Able = Member & { readonly ask: AnyAsk };
type Way = (method: Method, able: readonly Able[], question: unknown, asking: Asking) => RoutingEvents;

/** Milliseconds that the others have when one has ended its search for records, and found some. */
const LATE_MS = 2000;

/**
 * All members are asked at once. When one has ended its search for records, and found some, the others have two seconds. A
 * failure is told when all are through and there is no answer. What is stored or announced has failed as well where a
 * member whose errors count has.
 */
export const parallel = (members: readonly Member[], timeoutMs = 0): Router => combined(members, timeoutMs, atOnce);

/**
 * Members are asked in order: for a peer or a record until one has it, otherwise all of them. It ends with the failure of a
 * member whose errors count.
 */
export const sequential = (members: readonly Member[], timeoutMs = 0): Router => combined(members, timeoutMs, inOrder);

/** By each method those members are asked that have it. */
function combined(members: readonly Member[], timeoutMs: number, way: Way): Router {
  const asks = methods.flatMap((method): [Method, AnyAsk][] => {
    const able = members.flatMap((member): Able[] => {
      const ask = member.router[method] as AnyAsk | undefined;
      return ask === undefined ? [] : [{ ...member, ask }];
    });
    if (able.length === 0) return [];
    return [[method, (question, asking) => within(timeoutMs, asking, (own) => way(method, able, question, own))]];
  });
  const canProvide = () => members.some(({ router }) => router.canProvide?.() === true);
  return { ...(Object.fromEntries(asks) as Router), canProvide };
}

async function* atOnce(method: Method, able: readonly Able[], question: unknown, asking: Asking): RoutingEvents {
  const course = new Course(method);
  const ending = new AbortController();
  const own = { ...asking, signal: AbortSignal.any([asking.signal, ending.signal]) };
  let late: NodeJS.Timeout | undefined;
  const streams = able.map(async function* (member) {
    yield* course.watch(member, question, own);
    if (method === "search" && course.isAnswered) late ??= setTimeout(() => ending.abort(), LATE_MS);
  });
  try {
    for await (const event of merge(streams, () => ending.abort())) {
      yield event;
      if (course.isOver) return;
    }
  } finally {
    clearTimeout(late);
  }
  asking.signal.throwIfAborted();
  course.end();
}

async function* inOrder(method: Method, able: readonly Able[], question: unknown, asking: Asking): RoutingEvents {
  const course = new Course(method);
  for (const { delayMs: _, ...member } of able) {
    for await (const event of course.watch(member, question, asking)) {
      yield event;
      if (course.isOver) return;
    }
    asking.signal.throwIfAborted();
    if (course.failure !== undefined || (method === "search" && course.isAnswered)) break;
  }
  course.end();
}

/** How a question goes with the members that are asked. */
class Course {
  /** Of the first member whose errors count. */
  failure: unknown;
  isAnswered = false;
  readonly #answer: (typeof answers)[Method];
  #asked = 0;
  readonly #ignored: unknown[] = [];

  constructor(method: Method) {
    this.#answer = answers[method];
  }

  get isOver(): boolean {
    return this.isAnswered && this.#answer.isLast === true;
  }

  /** The events of one member; its failure is kept here. */
  async *watch({ ask, delayMs = 0, ...member }: Able, question: unknown, asking: Asking): RoutingEvents {
    const { signal } = asking;
    this.#asked += 1;
    try {
      if (delayMs > 0) await delay(delayMs, undefined, { signal, ref: false });
      for await (const event of within(member.timeoutMs ?? 0, asking, (own) => ask(question, own))) {
        if (event.type === this.#answer.type) this.isAnswered = true;
        yield event;
      }
      if (this.#answer.type === undefined) this.isAnswered = true;
    } catch (error) {
      // Nobody waits any more, for it or for all.
      if (signal.aborted) return;
      if (member.ignoreErrors === true) this.#ignored.push(error);
      else this.failure ??= error;
    }
  }

  /** @throws the failure that whoever asked has to know of */
  end(): void {
    if (this.failure !== undefined && !(this.isAnswered && this.#answer.type !== undefined)) throw this.failure;
    if (!this.isAnswered && this.#ignored.length === this.#asked) throw this.#ignored[0];
  }
}

/** @throws NodeError when the time is over */
async function* within(timeoutMs: number, asking: Asking, ask: (asking: Asking) => RoutingEvents): RoutingEvents {
  if (timeoutMs <= 0) return yield* ask(asking);
  const { signal } = asking;
  const limit = AbortSignal.timeout(timeoutMs);
  const late = (cause?: unknown) => new NodeError(`no answer within ${formatDuration(timeoutMs)}`, { cause });
  try {
    yield* ask({ ...asking, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (limit.aborted && !signal.aborted) throw late(error);
    throw error;
  }
}
