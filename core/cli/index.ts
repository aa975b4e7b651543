/** What the commands that bundled modules bring have of the program: they alone import it. */
export { errorLines, showChange, withServer } from "./admin/change.ts";
export {
  type AdminAnswer,
  adminSocket,
  NoServerError,
  StuckServerError,
  send,
  sendLines,
  socketOption,
  statusOf,
} from "./admin/client.ts";
export { follow } from "./admin/follow.ts";
export { withTokenFile } from "./admin/tokens.ts";
export { type Command, type CommandContext, type CommandOption, type KnownNames, UsageError } from "./command.ts";
export { type Check, type Finding, type Installation, problem, unfoundServer, warning } from "./doctor/check.ts";
export { existing, isWritable } from "./doctor/data_checks.ts";
export { commandHelp, type HelpSection } from "./help.ts";
export { withHost } from "./hosted.ts";
export { columns, type Output } from "./output.ts";
export { callRpc, helpText } from "./rpc/call.ts";
export { usageOf } from "./rpc/help.ts";
export { callOptions, commandFirst, takeOwn } from "./rpc/parse.ts";
export { Progress } from "./rpc/progress.ts";
export { findApi, isAnswering, type Server, serverOf, serverWithin } from "./rpc/server.ts";
export { surfaceOf } from "./rpc/surface.ts";
export { Screen } from "./screen.ts";
export { outliveReaders, type ServeOptions, type Service, serve } from "./serve.ts";
export { findOptions, firstWord, type Options, readWords, takeOptions } from "./words.ts";
