/** Reads the start-page items of a host. */
import { type StartEntry, startEntries } from "../http/routing/start_entries.ts";
import type { OwnedItem, StartPageItem } from "../types.ts";
import type { HostParts } from "./parts.ts";

/** Returns an empty list before the host is started. */
export function startPageOf(parts: HostParts | undefined): StartEntry[] {
  return startEntries((parts?.items.of("start-page-provider") ?? []) as OwnedItem<StartPageItem>[]);
}
