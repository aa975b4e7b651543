/** `--store shared` of the runners: their servers keep blocks and metadata in stores that several hosts could share. */
import { sharedStore } from "./shared_store.ts";

/** What a server is started with, each call for another empty store. @throws Error for a store that there is not */
export async function storeEnvironment(store: string | undefined): Promise<NodeJS.ProcessEnv> {
  if (store === undefined || store === "own") return {};
  if (store !== "shared") throw new Error(`--store is own or shared, not ${store}`);
  const { settings } = await sharedStore();
  return { MODHOST_NODE_STORE: JSON.stringify(settings) };
}
