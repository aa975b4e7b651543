/** Middleware that stands before apps: what a module gives to `provides("http-middleware")`, put into order. */
import type { Context } from "koa";
import type { HttpMiddleware, MiddlewareDescription, Module } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { type Usage, usageOf } from "../util/usage.ts";
import { InFlight } from "./in_flight.ts";
import { compose, eventOf, type Run } from "./koa.ts";
import { failureOf } from "./koa_answer.ts";
import { composeAll } from "./middleware.ts";
import type { ActiveRequest } from "./route.ts";

/** What is told of a layer: what it is, and what it has done so far. */
export interface LayerInfo {
  readonly name: string;
  readonly module: string;
  /** The virtual host before whose apps it stands; "*" for all. */
  readonly host: string;
  readonly order: number;
  /** Undefined: before all apps. */
  readonly apps: readonly string[] | undefined;
  /** Requests that have been through it. */
  readonly requests: number;
  /** Those of them that it answered itself, without calling `next`. */
  readonly answered: number;
  /** Those that it failed on. */
  readonly failed: number;
  /** Milliseconds spent in it, without what came after it. */
  readonly time: number;
}

/** A layer with what it tells people of itself. */
export interface DescribedLayer extends LayerInfo, Required<MiddlewareDescription> {}

/** A request on its way through layers. */
export interface LayeredRequest extends ActiveRequest {
  /** The module in whose middleware an error arose. */
  blame(owner: Module): void;
}

let made = 0;

/** The middleware of one provider. Knows the requests that are within it, and counts them. */
export class MiddlewareLayer {
  readonly name: string;
  readonly owner: Module;
  readonly order: number;
  readonly apps: ReadonlySet<string> | undefined;
  /** Its place among those of the same order: that of its loading, unless it is given. */
  readonly sequence: number;
  readonly #usage: Usage;
  readonly #describe: HttpMiddleware["describe"];
  readonly #composed: Run;
  readonly #inFlight = new InFlight();
  #requests = 0;
  #answered = 0;
  #failed = 0;
  #time = 0;

  /** @throws {ModhostError} HTTP_MIDDLEWARE_INVALID */
  constructor({ name, middleware, order = 0, apps, describe }: HttpMiddleware, owner: Module, sequence = ++made) {
    this.sequence = sequence;
    const invalid = (reason: string) => new ModhostError("HTTP_MIDDLEWARE_INVALID", { module: owner.name, reason });
    const list = [middleware].flat();
    if (list.length === 0 || list.some((one) => typeof one !== "function")) {
      throw invalid("middleware is a Koa middleware function, or a list of them");
    }
    if (!Number.isFinite(order)) throw invalid("order is a number");
    if (apps !== undefined && !(Array.isArray(apps) && apps.every((app) => typeof app === "string"))) {
      throw invalid("apps is a list of names of apps");
    }
    this.name = name ?? (list.map((one) => one.name).find((text) => text !== "") || owner.name);
    this.owner = owner;
    this.#usage = usageOf(owner);
    this.order = order;
    this.apps = apps && new Set(apps);
    this.#describe = describe;
    this.#composed = composeAll(list);
  }

  get info(): LayerInfo {
    return {
      name: this.name,
      module: this.owner.name,
      host: this.owner.host,
      order: this.order,
      apps: this.apps && [...this.apps],
      requests: this.#requests,
      answered: this.#answered,
      failed: this.#failed,
      time: this.#time,
    };
  }

  /** A description that fails is logged, and left out. */
  get described(): DescribedLayer {
    try {
      const { settings = [], counts = [] } = this.#describe?.() ?? {};
      return { ...this.info, settings, counts };
    } catch (error) {
      this.owner.log.error("The middleware %s cannot be described: %s", this.name, reasonOf(error));
      return { ...this.info, settings: [], counts: [] };
    }
  }

  readonly run: Run = async (context, next) => {
    const request = eventOf(context) as unknown as LayeredRequest;
    const begun = performance.now();
    let after = 0;
    let hasPassed = false;
    let isOwnFault = true;
    const place = this.#inFlight.enter(request);
    this.#usage.requests += 1;
    try {
      await this.#composed(context, async () => {
        hasPassed = true;
        const from = performance.now();
        isOwnFault = false;
        await next();
        isOwnFault = true;
        after += performance.now() - from;
      });
    } catch (thrown) {
      if (isOwnFault) {
        // A thrown status is an answer of its own.
        if (failureOf(thrown).status >= 500) this.#failed += 1;
        request.blame(this.owner);
      }
      throw thrown;
    } finally {
      this.#requests += 1;
      if (!hasPassed) this.#answered += 1;
      this.#time += performance.now() - begun - after;
      this.#inFlight.leave(place);
    }
  };

  /** Resolves when the last request has been through; those still within it after `grace` seconds are cut off. */
  retire(grace: number): Promise<void> {
    return this.#inFlight.retire(grace);
  }
}

/** The layers that a request goes through, the outermost first. */
export interface Chain {
  readonly layers: readonly MiddlewareLayer[];
  run(context: Context, next: () => Promise<unknown>): Promise<unknown>;
}

/** The outermost first; of one order, by the order of loading. */
export function inOrder(layers: readonly MiddlewareLayer[]): MiddlewareLayer[] {
  return layers.toSorted((a, b) => a.order - b.order || a.sequence - b.sequence);
}

/** The layers of one virtual host, and the chains that requests for its apps go through. */
export class Layers {
  readonly #layers: readonly MiddlewareLayer[];
  readonly #chains = new Map<string, Chain>();

  constructor(layers: readonly MiddlewareLayer[]) {
    this.#layers = inOrder(layers);
  }

  /** The chain before these apps; undefined where no layer stands before any of them. */
  before(apps: ReadonlySet<string>): Chain | undefined {
    if (this.#layers.length === 0) return undefined;
    const layers = this.#layers.filter((layer) => layer.apps === undefined || !layer.apps.isDisjointFrom(apps));
    if (layers.length === 0) return undefined;
    const key = layers.map(({ sequence }) => sequence).join();
    let chain = this.#chains.get(key);
    if (chain === undefined) {
      chain = { layers, run: compose(layers.map(({ run }) => run as never)) };
      this.#chains.set(key, chain);
    }
    return chain;
  }
}
