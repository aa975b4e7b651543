/** Lists the URLs of the dashboard. */
import { displayName, originOf } from "../../../core/http/index.ts";
import type { ListeningPort } from "../../../core/types.ts";

/**
 * The services of the dashboard and the Admin API. Plain HTTP comes first, because callers on this
 * machine need no token there.
 */
const dashboards: readonly (readonly [string, string])[] = [
  ["admin", "http"],
  ["admin_https", "https"],
];

/**
 * Returns the URLs of the dashboard on this machine, such as `http://localhost:5282/admin/`; none
 * while no port is open.
 */
export function dashboardUrls(ports: readonly ListeningPort[]): string[] {
  const urls = dashboards.flatMap(([service, scheme]) =>
    ports
      .filter((open) => open.service === service)
      .map(({ address, port }) => `${originOf(scheme, displayName(address), port)}/admin/`),
  );
  return [...new Set(urls)];
}
