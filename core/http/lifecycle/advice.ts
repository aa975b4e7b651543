/** Hints in the log for the author of a route, each logged once for each route. */
import type { Route } from "../routing/route.ts";

const advised = new WeakMap<Route, Set<string>>();

export const untypedAdvice =
  "responds without a content type: browsers take the text for Latin-1, and run scripts that they find in it. " +
  'Return text(...), html`...` or json(...), with import { text } from "modhost", or set ' +
  'event.response.headers.content_type = "text/plain; charset=utf-8"';

/** Logs the text as a warning of the route's module. */
export function advise(route: Route, text: string): void {
  let known = advised.get(route);
  if (known === undefined) advised.set(route, (known = new Set()));
  if (known.has(text)) return;
  known.add(text);
  route.mount.owner.log.warn("%s %s %s", route.method, route.path, text);
}
