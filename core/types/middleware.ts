/**
 * Koa middleware in a provider. The types are structural: those of any version of Koa match, and
 * nobody has to install them.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";

/**
 * The part of Koa's context that most middleware needs; `import type { Context } from "koa"` has
 * all of it.
 */
export interface MiddlewareContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** As sent, not decoded. It starts below the base path of the app, as `path` does. */
  url: string;
  path: string;
  /**
   * The base path of the app, "" at the root: put it before redirects, links and cookie paths. It
   * is always set; Koa's own types do not have it.
   */
  readonly mountPath?: string;
  /** As the client sent it. */
  readonly originalUrl: string;
  readonly querystring: string;
  readonly headers: IncomingMessage["headers"];
  /** Address, scheme and host as the option `trusted_proxies` determines them. */
  readonly ip: string;
  readonly protocol: string;
  readonly secure: boolean;
  readonly host: string;
  status: number;
  body: unknown;
  type: string;
  /**
   * False: nothing may compress the response. The host sets it for event streams; middleware can
   * set it for responses of its own.
   */
  compress?: unknown;
  /** `event` is the event that a route handler would get. */
  // biome-ignore lint/complexity/noBannedTypes: whatever type an author gives to the state of a context
  state: {};
  get(field: string): string;
  set(field: string, value: string | string[]): void;
  redirect(url: string): void;
  throw(status: number, ...message: string[]): never;
  readonly response: { readonly headers: OutgoingHttpHeaders };
}

/**
 * Koa middleware. `next` calls the next middleware of the provider; a request that the last one
 * does not handle goes to the next route of the host. The author chooses the context type.
 */
export type MiddlewareFunction = {
  run(context: MiddlewareContext, next: () => Promise<unknown>): unknown;
}["run"];

/** A Koa application. */
export interface MiddlewareApplication {
  readonly middleware: readonly MiddlewareFunction[];
  callback(): unknown;
}

/** A router of @koa/router. */
export interface MiddlewareRouter {
  readonly stack: readonly { readonly path: string | RegExp; readonly methods: readonly string[] }[];
  match(path: string, method: string): { readonly pathAndMethod: MiddlewareRouter["stack"] };
  // biome-ignore lint/suspicious/noExplicitAny: the middleware of any version of the package
  routes(): any;
  // biome-ignore lint/suspicious/noExplicitAny: the same
  allowedMethods(): any;
}

/** The values that a provider takes as `middleware`. */
export type Middleware = MiddlewareFunction | readonly MiddlewareFunction[] | MiddlewareApplication | MiddlewareRouter;

/** Koa middleware that runs before apps: the item of `module.provides("http-middleware", ...)`. */
export interface HttpMiddleware {
  /** Shown by `modhost routes --explain`. Default: the name of the function. */
  readonly name?: string;
  /**
   * One function, or a list of them in order. After `next` has resolved, the context contains the
   * response of the handler or the error page, which can still be changed. A body that no
   * middleware changes is sent as if there were no middleware.
   */
  readonly middleware: MiddlewareFunction | readonly MiddlewareFunction[];
  /**
   * Middleware with a lower number is further out: it sees a request first and its response last.
   * Default 0.
   */
  readonly order?: number;
  /** Names of the apps that it runs for; default: all. */
  readonly apps?: readonly string[];
  /**
   * Returns what the dashboard shows about it, in addition to the request counts of the server. It
   * is called each time somebody looks.
   */
  readonly describe?: () => MiddlewareDescription;
}

/** Titles begin with a capital and have one to three words. */
export interface MiddlewareDescription {
  /** Its current settings, without secrets. */
  readonly settings?: readonly {
    readonly title: string;
    readonly text: string;
    /** The virtual host with these settings; default: all hosts without settings of their own. */
    readonly host?: string;
  }[];
  /** Counts of its work so far. */
  readonly counts?: readonly {
    readonly title: string;
    readonly value: number;
    readonly unit?: "bytes";
    /** When the value last grew, in milliseconds since 1970. */
    readonly last?: number | undefined;
  }[];
}
