/**
 * The Koa application behind the host, and its contexts. Each request has one context, which all
 * middleware shares.
 */
import Koa, { type Context } from "koa";
import type { HttpEvent, HttpRequest, MiddlewareRouter } from "../../types.ts";

/** Composed Koa middleware; `next` runs what follows it. */
export type Run = (context: Context, next: () => Promise<unknown>) => Promise<unknown>;

/** `compose` is missing in Koa's types, and in Koa 2. */
export type Application = Koa & { readonly compose?: (middleware: readonly Koa.Middleware[]) => Run };

export const { compose } = new Koa() as unknown as Required<Application>;

const eventKey = Symbol("event");

type Bound = Context & { [eventKey]: HttpEvent };

/** Connects a context with its event, which middleware also finds as `context.state.event`. */
export function bindContext(context: Context, event: HttpEvent): void {
  (context as Bound)[eventKey] = event;
  context.state.event = event;
}

/** Returns the event of a context. */
export function eventOf(context: Context): HttpEvent {
  return (context as Bound)[eventKey];
}

/**
 * Returns the Koa context of a request: the one that middleware before the apps has seen, and that
 * `koaHandler` passes on.
 */
export function contextOf({ request }: { readonly request: HttpRequest }): Context {
  const { context } = request as HttpRequest & { readonly context?: Context };
  if (context === undefined) throw new TypeError("This request did not come through the host");
  return context;
}

/** Asks compressors before the app not to compress the response. */
export function keepUncompressed({ request }: { readonly request: HttpRequest }): void {
  const { context } = request as HttpRequest & { readonly context?: Context };
  if (context !== undefined) context.compress = false;
}

/**
 * Replaces what Koa would read from the headers about a client by what the host knows, which
 * follows `trusted_proxies`.
 */
const clientFacts: Readonly<Record<string, (request: HttpRequest) => unknown>> = {
  ip: ({ ip }) => ip,
  ips: ({ ip, conn }) => (ip === conn.ip() ? [] : [ip]),
  protocol: ({ secure }) => (secure ? "https" : "http"),
  host: (request) => request.url.host ?? request.header("host") ?? "",
};

const clientProperties: PropertyDescriptorMap = Object.fromEntries(
  Object.entries(clientFacts).map(([name, read]) => [
    name,
    {
      configurable: true,
      enumerable: true,
      get(this: Koa.Request) {
        return read(eventOf(this.ctx).request);
      },
      set(this: Koa.Request, value: unknown) {
        Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
      },
    },
  ]),
);

/** Creates the application of a service, whose contexts know the client as the host does. */
export function hostApplication(): Koa {
  const koa = new Koa();
  Object.defineProperties(koa.request, clientProperties);
  return koa;
}

/**
 * Connects a context of another application with its event, and makes it report the client as the
 * host knows it. Works with any version of Koa.
 */
export function adoptContext(context: Context, event: HttpEvent): void {
  bindContext(context, event);
  Object.defineProperties(context.request, clientProperties);
}

/**
 * Shares what earlier middleware has put on the request's own context (a session, a parsed body, a
 * user) with a context of another application. Values that are set there reach the request's own
 * context. Members that both have stay the application's own.
 */
export function shareMembers(context: Context, own: Context): void {
  context.state = own.state;
  share(context, own);
  share(context.request, own.request);
}

function share(to: object, from: object): void {
  // Sessions are accessors on the application's prototype of contexts.
  for (const key of [...Reflect.ownKeys(from), ...Reflect.ownKeys(Object.getPrototypeOf(from))]) {
    if (key in to) continue;
    const get = () => Reflect.get(from, key);
    const set = (value: unknown) => Reflect.set(from, key, value);
    Object.defineProperty(to, key, { get, set, configurable: true, enumerable: true });
  }
}

/** True for a router of `@koa/router`. */
export function isRouter(value: unknown): value is MiddlewareRouter {
  const { stack, routes, match } = Object(value) as Partial<MiddlewareRouter>;
  return Array.isArray(stack) && typeof routes === "function" && typeof match === "function";
}
