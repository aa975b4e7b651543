/** `modhost/net/http/server`: serves a table of routes over connections. `mod_http` stands on it; any module may. */

export { LineSink, type SinkOptions } from "../util/line_sink.ts";
export { RateLimit, rateOption } from "../util/rate_limit.ts";
export { stackOf } from "../util/stack.ts";
export { cutTo, isColored, type Paint, padTo, painter, type Style, widthOf } from "../util/terminal.ts";
export {
  authorizationOf,
  findToken,
  type KnownToken,
  knownToken,
  readAuthorization,
  readTokens,
  type TokenOption,
} from "../util/tokens.ts";
export { addressesOf } from "./addresses.ts";
export { type AppPath, appPaths } from "./app_paths.ts";
export { appName, appPath, basePath, bracketed, displayName, isWebScheme, originOf } from "./app_urls.ts";
export { precondition, rangeHolds, type Validators, validatorsOf } from "./conditions.ts";
export { type CorsPolicy, corsPolicy } from "./cors.ts";
export { event_stream } from "./event_stream.ts";
export { answerConditions, answerRanges, type ConditionAnswer, type RangeAnswer } from "./file_answer.ts";
export { lineOf } from "./head.ts";
export { checkHeaderName, readHeaders } from "./header_option.ts";
export { hostName } from "./hosts.ts";
export { followCuts } from "./in_flight.ts";
export { httpMethods, patternHint } from "./keys.ts";
export { contextOf, keepUncompressed } from "./koa.ts";
export { type DescribedLayer, type LayerInfo, MiddlewareLayer } from "./layer.ts";
export { isForwarded, type StrangerReason, strangerReason } from "./local_caller.ts";
export { koaHandler } from "./middleware.ts";
export type { HttpModule } from "./module.ts";
export { AppMount } from "./mount.ts";
export { readParts } from "./multipart.ts";
export { codingWeights, preferredCoding, preferredType } from "./negotiate.ts";
export { isSameOrigin, type OriginPolicy, originPolicy } from "./origins.ts";
export { patchNotices } from "./patches/notices.ts";
export { encodePath } from "./paths.ts";
export { providerFaults, providerHints } from "./provider_fields.ts";
export { type ByteRange, parseRanges, severalRanges } from "./ranges.ts";
export { joinSockets } from "./relay.ts";
export {
  answerFieldsOf,
  type Framing,
  framingOf,
  isLooping,
  passedFields,
  requestHopFields,
  viaOf,
} from "./relay_fields.ts";
export { relayedAnswer } from "./relayed_answer.ts";
export {
  type CountedElsewhere,
  latencyBounds,
  RequestCounts,
  RouteCounts,
  requestCounting,
  statusClasses,
} from "./request_counts.ts";
export { isSeenByMiddleware, roomToSend } from "./response.ts";
export type { MountPlace, RouteInfo } from "./route.ts";
export { type Explanation, HttpService, type RequestSiblings, type ServiceFigures } from "./service.ts";
export { environmentOf, type HttpEnvironment, type HttpSettings } from "./settings.ts";
export { addVary } from "./vary.ts";
