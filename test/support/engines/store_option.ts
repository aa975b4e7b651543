/**
 * `--store shared` of the runners: their servers keep blocks and metadata in stores that several
 * hosts could share.
 */
import type { SharedStoreSettings } from "modhost/node";
import { sharedStore } from "./shared_store.ts";

/**
 * Those of an empty store, another with each call; undefined for the server's own. @throws Error
 * for a store that there is not
 */
export async function storeSettings(store: string | undefined): Promise<SharedStoreSettings | undefined> {
  if (store === undefined || store === "own") return undefined;
  if (store !== "shared") throw new Error(`--store is own or shared, not ${store}`);
  return (await sharedStore()).settings;
}

/** What a server is started with, likewise. */
export async function storeEnvironment(store: string | undefined): Promise<NodeJS.ProcessEnv> {
  const settings = await storeSettings(store);
  return settings === undefined ? {} : { MODHOST_NODE_STORE: JSON.stringify(settings) };
}
