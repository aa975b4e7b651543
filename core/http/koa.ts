/** The Koa application behind the host, and the contexts that it makes: one for each request, the same for all middleware. */
import Koa, { type Context } from "koa";
import type { HttpEvent, HttpRequest } from "../types.ts";

/** Middleware as Koa composes it; `next` is what comes after. */
export type Run = (context: Context, next: () => Promise<unknown>) => Promise<unknown>;

/** `compose` is unknown to Koa's types, and to its second version. */
export type Application = Koa & { readonly compose?: (middleware: readonly Koa.Middleware[]) => Run };

export const { compose } = new Koa() as unknown as Required<Application>;

const eventKey = Symbol("event");

type Bound = Context & { [eventKey]: HttpEvent };

/** Tells a context which event it belongs to; middleware finds it as `context.state.event`, too. */
export function bindContext(context: Context, event: HttpEvent): void {
  (context as Bound)[eventKey] = event;
  context.state.event = event;
}

/** The event that a context belongs to. */
export function eventOf(context: Context): HttpEvent {
  return (context as Bound)[eventKey];
}

/** The Koa context of a request: what middleware before it has seen, and what `koaHandler` hands on. */
export function contextOf({ request }: { readonly request: HttpRequest }): Context {
  const { context } = request as HttpRequest & { readonly context?: Context };
  if (context === undefined) throw new TypeError("This request did not come through the host");
  return context;
}

/** Asks compressors that stand before the app to leave the answer alone. */
export function keepUncompressed({ request }: { readonly request: HttpRequest }): void {
  const { context } = request as HttpRequest & { readonly context?: Context };
  if (context !== undefined) context.compress = false;
}

/** What the host knows of a client goes before what Koa would make of the headers: they count as `trusted_proxies` says. */
const clientFacts: Readonly<Record<string, (request: HttpRequest) => unknown>> = {
  ip: ({ ip }) => ip,
  ips: ({ ip, conn }) => (ip === conn.ip() ? [] : [ip]),
  protocol: ({ secure }) => (secure ? "https" : "http"),
  host: ({ url, headers }) => url.host ?? headers.host ?? "",
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

/** The application of a service: its contexts know the client as the host does. */
export function hostApplication(): Koa {
  const koa = new Koa();
  Object.defineProperties(koa.request, clientProperties);
  return koa;
}

/** The same for a context that another application has made, of whatever version of Koa. */
export function adoptContext(context: Context, event: HttpEvent): void {
  bindContext(context, event);
  Object.defineProperties(context.request, clientProperties);
}
