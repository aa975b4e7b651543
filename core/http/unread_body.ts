/** The body of a request that nobody has read yet: who may have it as it comes, and what it means for the connection. */
import type { Http2ServerRequest } from "node:http2";
import type { RequestHeaders } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { HeadFacts } from "./head.ts";
import type { NodeRequest } from "./node_messages.ts";
import { type Route, takesAnything } from "./route.ts";

/** Up to so many unread bytes are read and dropped, so that the connection can be used again. */
const MAX_SMALL_REST = 64 * 1024;

/** The exchange whose request may have a body. */
interface Bodied {
  readonly http2: boolean;
  readonly gone: boolean;
  readonly head: HeadFacts;
  readonly service: {
    readonly settings: { readonly maxContentSize: number };
    readonly stopping: boolean;
    expects(request: NodeRequest): boolean;
  };
  readonly request: {
    readonly raw: NodeRequest;
    readonly headers: RequestHeaders;
    readonly incoming: { readonly taken: boolean; read(limit: number): Promise<Buffer> };
    /** The body, once it was read as a whole. */
    buffered: Buffer | undefined;
  };
  /** Goes on with the handlers. */
  run(): void;
  fail(thrown: unknown): void;
}

export function hasUnreadBody({ http2, head, request }: Bodied): boolean {
  if (request.buffered !== undefined) return false;
  if (http2) return !(request.raw as Http2ServerRequest).stream.endAfterHeaders;
  return head.chunked || (head.contentLength ?? 0) > 0;
}

/** True when the connection is closed after the answer: the host stops, or more is on its way than is worth reading. */
export function closesConnection(exchange: Bodied): boolean {
  const { http2, head, request, service } = exchange;
  if (http2) return false;
  if (!hasUnreadBody(exchange) || request.incoming.taken) return service.stopping;
  return head.contentLength === undefined || head.contentLength > MAX_SMALL_REST || service.expects(request.raw);
}

/**
 * True when the handler of the route takes the body as it comes. Otherwise it is read here first, and the handlers are
 * asked again when it is there; one that is too large or compressed fails the request.
 */
export function takesBodyAsItComes(exchange: Bodied, { kind, mount }: Route): boolean {
  const { request, head } = exchange;
  const isStreaming = mount.provider.streaming_uploads === true;
  const coding = takesAnything({ kind, mount }) ? undefined : request.headers.content_encoding;
  const limit = exchange.service.settings.maxContentSize;
  if (coding !== undefined && coding.toLowerCase() !== "identity") {
    exchange.fail(new ModhostError("BODY_ENCODED", { coding }));
  } else if (!isStreaming && (head.contentLength ?? 0) > limit) {
    exchange.fail(new ModhostError("BODY_TOO_LARGE", { limit }));
  } else if (isStreaming || kind === "middleware") {
    return true;
  } else readWhole(exchange, limit);
  return false;
}

function readWhole(exchange: Bodied, limit: number): void {
  const { request } = exchange;
  request.incoming.read(limit).then(
    (bytes) => {
      request.buffered = bytes;
      if (!exchange.gone) exchange.run();
    },
    (error: unknown) => exchange.fail(error),
  );
}
