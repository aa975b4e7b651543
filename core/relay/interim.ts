/** Interim responses on their way to the client. */
import type { ServerResponse } from "node:http";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";

const EARLY_HINTS = 103;

/**
 * Matches a link that Node.js writes into a 103. Node's own pattern lets `=` be part of a name as
 * well, so it tries each parameter in two ways, and 40 parameters before a stray quote block the
 * process for hours. This one can read a text in only one way.
 */
const earlyLink =
  /^<[\x21-\x3d\x3f-\x7e]*>(?: *; *[^;="\s\x7f-\xff]+(?:=(?:"[^;"\s\x7f-\xff]*"|[^;"\s\x7f-\xff]*))?)*$/;

/**
 * Sends the links of a 103. Clients need no other interim response, and no hints in another form.
 */
export function relayEarlyHints(
  request: NodeRequest,
  response: NodeResponse,
  status: number,
  rawHeaders: readonly string[],
): void {
  // HTTP/1.0 has no informational responses: a client would read one as the final response.
  if (status !== EARLY_HINTS || response.headersSent || request.httpVersion === "1.0") return;
  const link: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1] as string;
    if ((rawHeaders[at] as string).toLowerCase() === "link" && earlyLink.test(value)) link.push(value);
  }
  if (link.length === 0) return;
  try {
    (response as ServerResponse).writeEarlyHints({ link });
  } catch {
    // Node throws for a stream of HTTP/2 that the client has just reset.
  }
}
