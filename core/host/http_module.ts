/** The exports of the module `http`, for everybody who has the host and not the module. */
import type { HttpModule } from "../http/index.ts";
import type { Host } from "./types.ts";

/** Returns the exports of the module `http`; undefined if it is not loaded. */
export function httpOf(host: Host | undefined): HttpModule | undefined {
  const isLoaded = host?.modules().some(({ name, status }) => name === "http" && status === "loaded");
  return isLoaded === true ? host?.exports<HttpModule>("http") : undefined;
}
