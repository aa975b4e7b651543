/** The app name of a module, whose name has lost its leading `mod_` already: less one leading `http_` (spec 1). */
export function appName(module: string): string {
  return module.replace(/^http_/, "");
}

/** Base path of an app without a trailing slash: "" for the root. `$host` stands for the host's name. */
export function basePath(app: string, host: string, configured: unknown): string {
  const path = typeof configured === "string" ? configured : `/${app}`;
  const placed = path.replaceAll("$host", host);
  const rooted = placed.startsWith("/") ? placed : `/${placed}`;
  return rooted.endsWith("/") ? rooted.slice(0, -1) : rooted;
}
