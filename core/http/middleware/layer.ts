/**
 * Middleware that runs before the apps: orders what modules give to `provides("http-middleware")`.
 */
import type { Context } from "koa";
import type { HttpMiddleware, MiddlewareDescription, Module } from "../../types.ts";
import { ModhostError, readableThrown, reasonOf } from "../../util/errors.ts";
import { asHost, type Usage, usageOf } from "../../util/usage.ts";
import { type ActiveRequest, InFlight } from "../message/in_flight.ts";
import { compose, eventOf, type Run } from "./koa.ts";
import { failureOf } from "./koa_response.ts";
import { composeAll } from "./middleware.ts";

/** Information about a layer, and its counters. */
export interface LayerInfo {
  readonly name: string;
  readonly module: string;
  /** The virtual host before whose apps it runs; "*" for all. */
  readonly host: string;
  readonly order: number;
  /** Names of the apps before which it runs; undefined for all apps. */
  readonly apps: readonly string[] | undefined;
  /** Requests that have passed through it. */
  readonly requests: number;
  /** Requests that it responded to itself, without calling `next`. */
  readonly answered: number;
  /** Requests on which it failed. */
  readonly failed: number;
  /** Milliseconds spent in it, without the time in `next`. */
  readonly time: number;
}

/** A layer with its description for people. */
export interface DescribedLayer extends LayerInfo, Required<MiddlewareDescription> {}

/** A request that passes through layers. */
export interface LayeredRequest extends ActiveRequest {
  /**
   * Attributes an error to the module whose middleware threw it. `name`: the middleware, where the
   * configuration added it.
   */
  attributeError(owner: Module, name?: string): void;
}

/** Middleware that the option `http_middleware` adds: it belongs to no module. */
export interface Configured {
  readonly sequence: number;
  readonly account: Usage;
}

let made = 0;

/** The middleware of one provider, with its requests in progress and its counters. */
export class MiddlewareLayer {
  readonly name: string;
  readonly owner: Module;
  readonly order: number;
  readonly apps: ReadonlySet<string> | undefined;
  /**
   * Rank of this layer among layers with the same `order`: the order of loading, unless the
   * configuration sets it.
   */
  readonly sequence: number;
  readonly #usage: Usage;
  /** Counts failures of the middleware, also later ones of timers and sockets that it created. */
  readonly #account: Usage;
  readonly #describe: HttpMiddleware["describe"];
  readonly #composed: Run;
  readonly #inFlight = new InFlight();
  #requests = 0;
  #responded = 0;
  #failed = 0;
  #time = 0;

  /** @throws {ModhostError} HTTP_MIDDLEWARE_INVALID */
  constructor(provided: HttpMiddleware, owner: Module, configured?: Configured) {
    const { name, middleware, order = 0, apps, describe } = provided;
    this.sequence = configured?.sequence ?? ++made;
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
    this.#account = configured?.account ?? this.#usage;
    if (configured !== undefined) {
      this.#account.failed = () => {
        this.#failed += 1;
      };
    }
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
      answered: this.#responded,
      failed: this.#failed,
      time: this.#time,
    };
  }

  /** The layer with its description. A description that fails is logged and left out. */
  get described(): DescribedLayer {
    try {
      const { settings = [], counts = [] } = this.#account.run(() => this.#describe?.()) ?? {};
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
    const slot = this.#inFlight.enter(request);
    this.#usage.requests += 1;
    try {
      await this.#account.run(this.#composed, context, async () => {
        hasPassed = true;
        const from = performance.now();
        isOwnFault = false;
        await asHost(next);
        isOwnFault = true;
        after += performance.now() - from;
      });
    } catch (given) {
      const thrown = readableThrown(given);
      if (isOwnFault) {
        // A thrown status below 500 is a response and not a failure.
        if (failureOf(thrown).status >= 500) this.#failed += 1;
        request.attributeError(this.owner, this.#account === this.#usage ? undefined : this.name);
      }
      throw thrown;
    } finally {
      this.#requests += 1;
      if (!hasPassed) this.#responded += 1;
      this.#time += performance.now() - begun - after;
      this.#inFlight.leave(slot);
    }
  };

  /**
   * Resolves when the last request has passed through. When its module is unloaded, requests still
   * in it after `grace` seconds are cut off. Nobody waits when the module only removes its
   * middleware, for another configuration.
   */
  async retire(grace: number): Promise<void> {
    if (this.#usage.isLeaving) await this.#inFlight.retire(grace);
  }
}

/** The layers that a request passes through, the outermost first. */
export interface Chain {
  readonly layers: readonly MiddlewareLayer[];
  run(context: Context, next: () => Promise<unknown>): Promise<unknown>;
}

/**
 * Sorts layers, the outermost first. Layers with the same `order` keep the order in which they were
 * loaded.
 */
export function inOrder(layers: readonly MiddlewareLayer[]): MiddlewareLayer[] {
  return layers.toSorted((a, b) => a.order - b.order || a.sequence - b.sequence);
}

/** The layers of one virtual host, and the chains that requests for its apps pass through. */
export class Layers {
  readonly #layers: readonly MiddlewareLayer[];
  readonly #chains = new Map<string, Chain>();

  constructor(layers: readonly MiddlewareLayer[]) {
    this.#layers = inOrder(layers);
  }

  /** Returns the chain before these apps; undefined when no layer runs before any of them. */
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
