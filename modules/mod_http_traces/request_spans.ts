/** Spans of requests, by OpenTelemetry's semantic conventions for HTTP servers. */
import { type Attributes, type Context, createContextKey, type SpanContext, SpanKind, trace } from "@opentelemetry/api";
import { isRpcPath, shownQuery, shownText } from "../../core/http/index.ts";
import type { HttpRequest, RequestTrace } from "../../core/types.ts";
import type { SpanSource } from "./spans.ts";

/** The inputs of request spans in addition to the request. */
interface RequestSources {
  /** Returns the context in which the span begins. */
  parentOf(traced: RequestTrace): Context;
  begun(traced: RequestTrace, span: SpanContext): void;
}

/**
 * Makes a span for each request, with its module and route. If an instrumentation of Node's servers
 * has made a span for the same request, ours is its child.
 */
export function requestSpans({ parentOf, begun }: RequestSources): SpanSource<RequestTrace> {
  return {
    channel: "modhost:request",
    begin(traced, tracer) {
      const { request } = traced;
      const context = parentOf(traced);
      const parent = trace.getSpanContext(context);
      const isInner = parent !== undefined && parent.isRemote !== true;
      const kind = isInner ? SpanKind.INTERNAL : SpanKind.SERVER;
      const span = tracer.startSpan(
        knownMethod(request) ?? "HTTP",
        { kind, attributes: attributesOf(request) },
        context,
      );
      if (isInner) setRoute(context, traced);
      begun(traced, span.spanContext());
      return { span, context };
    },
    end({ request, module, route, status, complete, error }, span) {
      if (route !== undefined) {
        span.updateName(nameOf(request, route));
        span.setAttribute("http.route", pathOf(route));
      }
      const { query } = request.url;
      const isShown = query !== undefined && module !== "http_api" && !isRpcPath(request.path);
      if (isShown) span.setAttribute("url.query", shownQuery(query, "redacted") ?? "");
      if (module !== undefined) span.setAttribute("modhost.module", module);
      if (status > 0) span.setAttribute("http.response.status_code", status);
      if (!complete) span.setAttribute("modhost.incomplete", true);
      if (status >= 500) span.setAttribute("error.type", String(status));
      else if (error !== undefined) span.setAttribute("error.type", error instanceof Error ? error.name : "_OTHER");
      return status >= 500;
    },
  };
}

function attributesOf(request: HttpRequest): Attributes {
  const { method, secure, httpversion } = request;
  const scheme = secure ? "https" : "http";
  const known = knownMethod(request);
  const agent = request.header("user-agent");
  return {
    "http.request.method": known ?? "_OTHER",
    ...(known === undefined && { "http.request.method_original": method }),
    "url.path": shownText(request.url.raw_path, "redacted"),
    "url.scheme": scheme,
    "client.address": request.ip,
    "network.protocol.version": httpversion === "2.0" ? "2" : httpversion,
    "modhost.request.id": request.id,
    ...addressOf(request.forwarded_host ?? request.url.host ?? request.header("host"), scheme),
    ...(agent !== undefined && { "user_agent.original": shownText(agent, "redacted") }),
  };
}

/** Returns the name and port that the client requested. */
function addressOf(authority: string | undefined, scheme: string): Attributes {
  const [, bracketed, name, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(authority ?? "") ?? [];
  const address = bracketed ?? name;
  if (address === undefined) return {};
  return { "server.address": address, "server.port": Number(port ?? (scheme === "https" ? 443 : 80)) };
}

/** Methods that the conventions name. Clients can invent any others. */
const methods = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"]);

function knownMethod({ method }: HttpRequest): string | undefined {
  return methods.has(method) ? method : undefined;
}

const pathOf = (route: string) => route.slice(route.indexOf(" ") + 1);

/**
 * Returns a name such as `HEAD /shop`, even if the route of GET responds. Websockets have their own
 * name.
 */
function nameOf(request: HttpRequest, route: string): string {
  return `${route.startsWith("WS ") ? "WS" : (knownMethod(request) ?? "HTTP")} ${pathOf(route)}`;
}

/**
 * The context key under which instrumentations look for the route. The packages of the SDK share it
 * by its name.
 */
const metadataKey = createContextKey("OpenTelemetry SDK Context Key RPC_METADATA");

/**
 * Passes the route to the instrumentation that has made the server's span, because that span ends
 * before this one.
 */
function setRoute(context: Context, traced: RequestTrace): void {
  const metadata = context.getValue(metadataKey);
  if (typeof metadata !== "object" || metadata === null) return;
  const get = () => (traced.route === undefined ? undefined : pathOf(traced.route));
  Object.defineProperty(metadata, "route", { get, set: () => undefined, configurable: true, enumerable: true });
}
