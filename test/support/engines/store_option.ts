/**
 * The option `--store shared` of test runners: their servers store blocks and metadata in a store
 * that several hosts could share.
 */
import type { SharedStoreSettings } from "modhost/node";
import { sharedStore } from "./shared_store.ts";

/**
 * Returns the settings of a new, empty store, or undefined for the server's own.
 * @throws Error for an unknown kind of store
 */
export async function storeSettings(store: string | undefined): Promise<SharedStoreSettings | undefined> {
  if (store === undefined || store === "own") return undefined;
  if (store !== "shared") throw new Error(`--store must be own or shared, not ${store}`);
  return (await sharedStore()).settings;
}

/** Returns environment variables that make a server use a store of the kind `store`. */
export async function storeEnvironment(store: string | undefined): Promise<NodeJS.ProcessEnv> {
  const settings = await storeSettings(store);
  return settings === undefined ? {} : { MODHOST_NODE_STORE: JSON.stringify(settings) };
}
