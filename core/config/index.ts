/** Configuration: where it is looked for, how options are declared, read and checked. */

export { nearest } from "../util/nearest.ts";
export {
  Config,
  type ConfigSources,
  configFrom,
  environmentPrefix,
  type UnknownName,
  unknownMessage,
  variableOf,
} from "./config.ts";
export { allowedText, convert, type Problem, show, shownValue } from "./convert.ts";
export { type LoadConfigOptions, loadConfig, searchPlaces } from "./load.ts";
export { coreOptions } from "./options.ts";
export { placeOf } from "./place.ts";
export { optionStates } from "./states.ts";
export { formatOf, placeIn } from "./text.ts";
export { TextError } from "./text_error.ts";
