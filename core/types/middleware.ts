/** Koa middleware in a provider. Structural: the types of Koa itself fit, of any version, and nobody has to have them. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";

/** The part of Koa's context that middleware needs most; `import type { Context } from "koa"` has all of it. */
export interface MiddlewareContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** As sent, not decoded; begins where the app begins, as does `path`. */
  url: string;
  path: string;
  /**
   * Where the app begins, "" at the root: to be put before redirects, links and the paths of cookies. It is always there;
   * Koa's own types do not know it.
   */
  readonly mountPath?: string;
  /** As the client sent it. */
  readonly originalUrl: string;
  readonly querystring: string;
  readonly headers: IncomingMessage["headers"];
  /** Address, scheme and host as the option `trusted_proxies` has them. */
  readonly ip: string;
  readonly protocol: string;
  readonly secure: boolean;
  readonly host: string;
  status: number;
  body: unknown;
  type: string;
  /** False: nobody is to compress the answer. The host says so of event streams, and the RPC of the node of all it answers. */
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
 * Koa middleware: `next` is what the provider lists after it; what the last one leaves unanswered is for the next route
 * of the host. Whatever context type it asks for is the author's matter.
 */
export type MiddlewareFunction = {
  run(context: MiddlewareContext, next: () => Promise<unknown>): unknown;
}["run"];

/** A Koa application. */
export interface MiddlewareApplication {
  readonly middleware: readonly MiddlewareFunction[];
  callback(): unknown;
}

/** What a provider takes as `middleware`. */
export type Middleware = MiddlewareFunction | readonly MiddlewareFunction[] | MiddlewareApplication;

/** Koa middleware before apps: what `module.provides("http-middleware", ...)` takes. */
export interface HttpMiddleware {
  /** Shown by `modhost routes --explain`. Default: the name of the function. */
  readonly name?: string;
  /**
   * One function, or a list of them in their order. What handlers answer, error pages included, is in the context once
   * `next` has resolved, and can be changed there; a body that nobody touches is sent as if no middleware were there.
   */
  readonly middleware: MiddlewareFunction | readonly MiddlewareFunction[];
  /** Lower numbers stand further out: they see a request first and its answer last. Default 0. */
  readonly order?: number;
  /** Names of the apps that it stands before; default: all. */
  readonly apps?: readonly string[];
  /** What it tells people of itself, beside the counts of requests that the server keeps: asked when somebody looks. */
  readonly describe?: () => MiddlewareDescription;
}

/** Titles begin with a capital and have one to three words. */
export interface MiddlewareDescription {
  /** What it does as it is set now; nothing that is secret. */
  readonly settings?: readonly {
    readonly title: string;
    readonly text: string;
    /** The virtual host that it holds for; default: all that have no settings of their own. */
    readonly host?: string;
  }[];
  /** What it has done so far. */
  readonly counts?: readonly {
    readonly title: string;
    readonly value: number;
    readonly unit?: "bytes";
    /** When it last grew, in milliseconds since 1970. */
    readonly last?: number | undefined;
  }[];
}
