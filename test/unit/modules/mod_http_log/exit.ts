/**
 * Logs 200 requests to standard output and ends the process at once, as a test of the flush at
 * exit.
 */
import type { HttpFinishedEvent } from "#core/types.ts";
import log from "#modules/mod_http_log/index.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";
import { Harness } from "#test/unit/modules/harness.ts";

const harness = new Harness();
log(harness.module("http_log"));
for (let at = 0; at < 200; at += 1) {
  const request = {
    id: `${at}`,
    ip: "::1",
    method: "GET",
    path: `/${at}`,
    ...sentHeaders({}),
    url: { raw_path: `/${at}` },
  };
  const event = { request, status: 200, bytes: 0, duration: 1, complete: true, app: undefined };
  harness.bus.fire("http-finished", event as unknown as HttpFinishedEvent);
}
process.exit(0);
