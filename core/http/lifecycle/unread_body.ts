/**
 * Request bodies that nobody has read yet: which handlers read them as they arrive, and when the
 * connection must be closed.
 */
import type { Http2ServerRequest } from "node:http2";
import type { HttpRequest } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import type { NodeRequest } from "../../util/node_messages.ts";
import type { HeadFacts } from "../message/head.ts";
import { type Route, takesAnything } from "../routing/route.ts";

/**
 * Maximum number of unread bytes that are read and dropped so that the connection can be used
 * again.
 */
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
    readonly header: HttpRequest["header"];
    readonly incoming: { readonly taken: boolean; read(limit: number): Promise<Buffer> };
    /** The body, once it was read as a whole. */
    buffered: Buffer | undefined;
  };
  /** Continues with the handlers. */
  run(): void;
  fail(thrown: unknown): void;
}

export function hasUnreadBody({ http2, head, request }: Bodied): boolean {
  if (request.buffered !== undefined) return false;
  if (http2) return !(request.raw as Http2ServerRequest).stream.endAfterHeaders;
  return head.chunked || (head.contentLength ?? 0) > 0;
}

/**
 * Whether the connection is closed after the response: the host is stopping, or the unread rest of
 * the body is too large to read.
 */
export function closesConnection(exchange: Bodied): boolean {
  const { http2, head, request, service } = exchange;
  if (http2) return false;
  if (!hasUnreadBody(exchange) || request.incoming.taken) return service.stopping;
  return head.contentLength === undefined || head.contentLength > MAX_SMALL_REST || service.expects(request.raw);
}

/**
 * Returns true when the handler of the route reads the body as it arrives. Otherwise the body is
 * read here first, and the handlers run again afterwards. A body that is too large or compressed
 * fails the request.
 */
export function takesBodyAsItComes(exchange: Bodied, { kind, mount }: Route): boolean {
  const { request, head } = exchange;
  const isStreaming = mount.provider.streaming_uploads === true;
  const coding = takesAnything({ kind, mount }) ? undefined : request.header("content-encoding");
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
