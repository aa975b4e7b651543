/** Configuration: finds and reads it, and declares and checks options. */

export { nearest } from "../util/nearest.ts";
export {
  Config,
  type ConfigSources,
  configFrom,
} from "./config.ts";
export { allowedText, convert, type Problem, show, shownValue } from "./convert.ts";
export { variableOf } from "./environment.ts";
export { configFileNames, type LoadConfigOptions, loadConfig } from "./load.ts";
export { type InstalledModule, type InstalledModules, modulesLockIn, parseModulesLock } from "./modules_lock.ts";
export { isNear, openAppsText, protectsApps, type UnknownName, unknownMessage } from "./names.ts";
export { coreOptions } from "./options.ts";
export { scriptPosition } from "./script_position.ts";
export { optionStates } from "./states.ts";
export { formatOf, positionIn } from "./text.ts";
export { TextError } from "./text_error.ts";
