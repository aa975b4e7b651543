/**
 * `modhost/net/http/server`: serves a table of routes over connections, for modules that serve
 * HTTP.
 */

export { type FaultReason, faultOf, RelayFault } from "../relay/fault.ts";
export {
  announcedBody,
  type Framing,
  foldedName,
  framingOf,
  isLooping,
  mayTrail,
  passedFields,
  responseFieldsOf,
  viaOf,
} from "../relay/fields.ts";
export { relayEarlyHints } from "../relay/interim.ts";
export { trailersOf } from "../relay/message.ts";
export { OutgoingRequest, type Received, type RelayTimeouts } from "../relay/outgoing_request.ts";
export { relayResponse } from "../relay/response.ts";
export { joinTunnels, type Tunnel } from "../relay/tunnel.ts";
export { hostPort } from "../util/brackets.ts";
export { LineSink, type SinkOptions } from "../util/line_sink.ts";
export { tracedFields } from "../util/log.ts";
export { isRpcPath, type QueryMode, shownQuery, shownReferer, shownText } from "../util/masked_text.ts";
export { RateLimit, rateOption } from "../util/rate_limit.ts";
export { withoutSecrets } from "../util/secret_text.ts";
export { stackOf } from "../util/stack.ts";
export { cutTo, isColored, type Paint, padTo, painter, type Style, widthOf } from "../util/terminal.ts";
export {
  findToken,
  type KnownToken,
  knownToken,
  readAuthorization,
  readTokens,
  type TokenOption,
} from "../util/tokens.ts";
export { accountFor, type Usage as Account } from "../util/usage.ts";
export { precondition, rangeApplies, type Validators, validatorsOf } from "./files/conditions.ts";
export {
  type ConditionResult,
  checkConditions,
  type RangeResponse,
  rangeResponse,
} from "./files/file_response.ts";
export { type ByteRange, parseRanges, severalRanges } from "./files/ranges.ts";
export {
  type CountedElsewhere,
  latencyBounds,
  RequestCounts,
  RouteCounts,
  requestCounting,
  statusClasses,
} from "./lifecycle/request_counts.ts";
export { followCuts } from "./message/in_flight.ts";
export { readParts } from "./message/multipart/parts.ts";
export { codingWeights, preferredCoding, preferredType } from "./message/negotiate.ts";
export { asciiTarget, encodePath } from "./message/paths.ts";
export { isSeenByMiddleware, roomToSend } from "./message/response.ts";
export { addVary } from "./message/vary.ts";
export { contextOf, keepUncompressed } from "./middleware/koa.ts";
export { type DescribedLayer, type LayerInfo, MiddlewareLayer } from "./middleware/layer.ts";
export { koaHandler } from "./middleware/middleware.ts";
export type { HttpModule } from "./module.ts";
export { patchNotices } from "./patch_notices.ts";
export { addressesOf } from "./policy/addresses.ts";
export { type CorsPolicy, corsPolicy } from "./policy/cors.ts";
export { checkHeaderName, readHeaders } from "./policy/header_option.ts";
export { isForwarded, type StrangerReason, strangerReason } from "./policy/local_caller.ts";
export { isSameOrigin, isWebScheme, type OriginPolicy, originOf, originPolicy } from "./policy/origins.ts";
export { type AppPath, appPaths } from "./routing/app_paths.ts";
export {
  appName,
  appPath,
  basePath,
  displayName,
  pathFault,
} from "./routing/app_urls.ts";
export { hostName } from "./routing/hosts.ts";
export { httpMethods, patternHint } from "./routing/keys.ts";
export { AppMount } from "./routing/mount.ts";
export { providerFaults, providerHints } from "./routing/provider_fields.ts";
export type { MountSettings, RouteInfo } from "./routing/route.ts";
export { type StartEntry, startEntries } from "./routing/start_entries.ts";
export {
  type Explanation,
  HttpService,
  type RequestSiblings,
  type ServiceMetrics,
} from "./service.ts";
export { environmentOf, type HttpEnvironment, type HttpSettings } from "./settings.ts";
export { event_stream } from "./sse/stream.ts";
