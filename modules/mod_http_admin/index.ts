/**
 * The Admin API and the dashboard operate the running server, at a Unix socket in the data folder
 * and at ports of their own.
 */
import { join } from "node:path";
import type { Module } from "../../core/types.ts";
import { throughPorts, throughSocket } from "./access.ts";
import { apiRoutes } from "./api.ts";
import { dashboardRoutes } from "./dashboard/index.ts";
import { PageKeys } from "./dashboard/keys.ts";
import { sessionRoutes } from "./dashboard/session.ts";
import { dashboardUrls } from "./dashboard/urls.ts";
import { Streams } from "./events.ts";
import { History } from "./history/index.ts";
import { Items } from "./items.ts";
import { operations } from "./operations/index.ts";
import { options } from "./options.ts";
import { openPorts, redirectRoutes } from "./ports.ts";
import { RecentRequests } from "./recent_requests.ts";
import { scopes } from "./scopes.ts";
import { shapes } from "./shapes.ts";
import { openSocket } from "./socket.ts";
import { openStartPage } from "./start_page/index.ts";
import { ownTopics } from "./topics.ts";
import { keepPast } from "./watched.ts";

export { options };
export const global = true;
export const shared = true;
export const depends = ["http"];

export default function load(module: Module): void {
  const items = new Items();
  const streams = new Streams(items);
  const grace = () => module.get_option_period("unload_grace") ?? 10;
  module.handle_items(
    "admin-provider",
    (item) => items.add(item),
    (item) => items.remove(item, grace()),
  );
  const watched = { history: new History(module), requests: new RecentRequests(module) };
  keepPast(module, watched);
  for (const kind of scopes) module.provides("token-scope", kind);
  module.provides("admin", { operations, topics: ownTopics(module, watched), shapes });
  openSocket(module, apiRoutes({ module, items, streams, watched, authorize: throughSocket }));
  let read: Promise<PageKeys> | undefined;
  const keys = () => (read ??= PageKeys.in(join(module.data_path(), "admin.key")));
  const { authorize, isLocal, isSignedIn } = throughPorts(module, keys);
  openPorts(module, {
    ...apiRoutes({ module, items, streams, watched, authorize }),
    ...sessionRoutes({ module, keys, authorize }),
    ...dashboardRoutes({ items, keys, isLocal, isSignedIn }),
  });
  module.provides("start-page", {
    name: "dashboard",
    help: "Open the dashboard",
    urls: () => dashboardUrls(module.listening()),
  });
  openStartPage(module, isLocal);
  module.provides("http", { route: redirectRoutes(module), streaming_uploads: true, cors: { enabled: false } });
}
