/** Reads content over HTTP. */
import { failure } from "../../util/errors.ts";
import { fetchErrorText } from "../../util/fetch_error.ts";
import { quote } from "../../util/go/text.ts";

export interface HttpContent {
  readonly status: number;
  /** The length that the server declares; undefined when it declares none. */
  readonly length: number | undefined;
  /** Must be read to its end or passed to `discard`. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Closes the connection of content that is not going to be read. */
export async function discard({ body }: HttpContent): Promise<void> {
  for await (const _ of body) break;
}

async function* none(): AsyncGenerator<Uint8Array> {}

/**
 * Requests a URL.
 * @throws NodeError with the text of go-ipfs when no response arrives; the reason of the signal
 * when it aborts
 */
export async function requestUrl(
  url: string,
  { range, signal }: { readonly range?: string; readonly signal?: AbortSignal | undefined } = {},
): Promise<HttpContent> {
  // Lengths and ranges refer to the unencoded content.
  const headers = { "accept-encoding": "identity", ...(range === undefined ? {} : { range }) };
  const {
    status,
    headers: responseHeaders,
    body,
  } = await fetch(url, { headers, signal: signal ?? null }).catch((error) => {
    signal?.throwIfAborted();
    throw failure("URL_NOT_FETCHED", { reason: `Get ${quote(url)}: ${fetchErrorText(error)}` }, error);
  });
  const length = responseHeaders.get("content-length");
  return { status, length: length === null ? undefined : Number(length), body: body ?? none() };
}
