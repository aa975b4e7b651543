/**
 * Serves requests that Node's parser refuses. They get a response, and are logged and counted like
 * all others, although nothing is known of them.
 */
import type { Context } from "koa";
import { UNKNOWN } from "../connection/unparsed_messages.ts";
import { unparsedHead } from "../message/head.ts";
import { nowhere } from "../message/paths.ts";
import { Exchange } from "./exchange.ts";
import type { ExchangeService } from "./exchange_service.ts";

/**
 * The exchange of a request that could not be parsed. Hooks of `http-error` get no request with it.
 */
export function unparsedExchange(service: ExchangeService, context: Context): Exchange {
  return new Exchange(service, context, unparsedHead, { ...nowhere, rawPath: UNKNOWN }, UNKNOWN, "*");
}
