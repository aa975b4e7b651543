/** Checked by the compiler only: the types of items as receivers get them, by kind. */
import type { HttpProvider, MiddlewareProvider, Module, NetProvider, OwnedItem } from "modhost/types";

export function receives(module: Module): void {
  module.handle_items(
    "http-provider",
    ({ item, owner }) => {
      const provider: HttpProvider | MiddlewareProvider = item;
      module.log.info("%s of %s", provider.name, owner.name);
    },
    ({ item }) => item.priority,
  );
  module.handle_items(
    "net-provider",
    ({ item }) => item.onconnect satisfies NetProvider["onconnect"],
    () => undefined,
  );
  module.handle_items(
    "thing",
    // @ts-expect-error: nobody knows what things are made of
    ({ item }) => item.size,
    () => undefined,
  );
  const things = new Set<OwnedItem>();
  module.handle_items(
    "thing",
    (thing) => void things.add(thing),
    (thing) => things.delete(thing),
  );
}
