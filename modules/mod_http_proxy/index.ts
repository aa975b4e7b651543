/** A reverse proxy: forwards requests for configured apps to other servers. */

import { type Drained, ProxiedApps, type View } from "./apps.ts";
import { operationsOf, shapes } from "./operations.ts";
import { options } from "./options.ts";

export { options };
export const global = true;
export const depends = ["http"];

export default function load(module: View): void {
  const proxy = new ProxiedApps(module);
  const now = () => module.now();
  module.provides(
    "metrics",
    proxy.metrics.provider(() => proxy.apps, now),
  );
  const pages = { folder: new URL("pages/", import.meta.url), script: "main.js" };
  module.provides("admin", { operations: operationsOf(proxy, now), shapes, pages });
  // With virtual hosts, each has the apps of its own options.
  if (module.hosts().length === 0) proxy.add(module, true);
  module.add_host = (view, isLast) => proxy.add(view as View, isLast);
  module.changed = () => proxy.configure();
  module.ready = () => proxy.start();
  module.save = () => proxy.save();
  module.restore = (saved) => proxy.restore(saved as Drained);
  module.unload = () => proxy.close();
}
