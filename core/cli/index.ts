/** `modhost/cli`: the API for commands of modules and their checks for `modhost doctor`. */
export { loadConfig, nearest } from "../config/index.ts";
export type { ProcessAct } from "../host/types.ts";
export { reasonOf } from "../util/errors.ts";
export { explainMissing } from "../util/missing_package.ts";
export { packageVersion } from "../util/package.ts";
export { isColored, painter } from "../util/terminal.ts";
export { counted, printable, size_text } from "../util/text.ts";
export { errorLines, showChange, withServer } from "./admin/change.ts";
export {
  type AdminResponse,
  adminSocket,
  NoServerError,
  StuckServerError,
  send,
  sendLines,
  socketOption,
  statusOf,
} from "./admin/client.ts";
export { follow } from "./admin/follow.ts";
export { withLoadedTokens, withTokenFile } from "./admin/tokens.ts";
export {
  type Command,
  type CommandContext,
  type CommandOption,
  type KnownNames,
  type Subcommand,
  UsageError,
} from "./command.ts";
export {
  type Check,
  type Finding,
  type Installation,
  openToOthers,
  problem,
  unfoundServer,
  warning,
} from "./doctor/check.ts";
export { existing, isWritable } from "./doctor/data_checks.ts";
export { commandHelp, type HelpSection } from "./help.ts";
export { connectTo, withHost } from "./hosted.ts";
export { columns, type Output } from "./output.ts";
export { Progress } from "./progress.ts";
export { Screen } from "./screen.ts";
export { outliveReaders, type ServeOptions, type Service, serve } from "./serve.ts";
export { findOptions, firstWord, type Options, readWords, takeOptions } from "./words.ts";
