/** An edited configuration: what it would do, and how it is put in force. */
import {
  type Config,
  type Problem,
  placeIn,
  show,
  TextError,
  type UnknownName,
  unknownMessage,
} from "../config/index.ts";
import type { ConfigCheck, ConfigFault, ConfigPlan } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { type ApplyDeps, type ApplyOptions, applyConfig, planConfig, previewConfig } from "./apply.ts";
import type { Progress } from "./change.ts";
import { assertEditable, type ConfigEdit, replaceConfigFile } from "./config_file.ts";

/** Reads the configuration with this text in the place of its file's. */
export type ReadWith = (text: string) => Promise<Config>;

export interface EditDeps {
  readonly edit: ConfigEdit;
  readonly read: ReadWith;
  readonly progress: Progress;
  /** The file was written here: that is no news for who watches it. */
  written(): Promise<void>;
}

/** Nothing is changed, and nothing is thrown for what is wrong in the text. */
export async function checkConfig(
  parts: ApplyDeps,
  options: ApplyOptions,
  text: string,
  read: ReadWith,
): Promise<ConfigCheck> {
  try {
    const { plan, unknown } = await previewConfig(parts, { ...options, read: () => read(text) });
    return { faults: [], warnings: await warningsOf(unknown, text), plan };
  } catch (error) {
    const mask = (message: string) => parts.config.mask(message);
    const faults = await faultsOf(error, text);
    return { faults: faults.map((fault) => ({ ...fault, message: mask(fault.message) })), warnings: [] };
  }
}

/**
 * Writes the file and applies it. What can be found wrong is found before anything is written, and where it cannot be
 * applied, the file is what it was.
 * @throws {ModhostError} CONFIG_NOT_EDITABLE, CONFIG_CHANGED, CONFIG_NOT_WRITTEN, and what `applyConfig` throws
 */
export async function editConfig(
  parts: ApplyDeps,
  options: ApplyOptions,
  { edit, read, progress, written }: EditDeps,
): Promise<ConfigPlan> {
  await assertEditable(parts.config.file, edit);
  await planConfig(parts, { ...options, read: () => read(edit.text) });
  // Planning may have taken a while, and others have editors, too.
  const path = await assertEditable(parts.config.file, edit);
  const takeBack = await replaceConfigFile(path, edit.text);
  await written();
  progress.step("config file written, the former one kept beside it");
  try {
    return await applyConfig(parts, options, progress);
  } catch (error) {
    await takeBack()
      .then(written)
      .catch((failure: unknown) => {
        options.log.host.error(
          "The former text of %s is beside it, and could not be put back: %s",
          path,
          reasonOf(failure),
        );
      });
    throw error;
  }
}

/** Names of the environment are not the text's. */
async function warningsOf(unknown: readonly UnknownName[], text: string): Promise<ConfigFault[]> {
  const placed = unknown.map(async (name) => ({
    path: name.path,
    message: unknownMessage(name),
    ...(await placeIn(text, name.path)),
  }));
  return (await Promise.all(placed)).filter((warning) => "line" in warning);
}

async function faultsOf(error: unknown, text: string): Promise<ConfigFault[]> {
  if (!ModhostError.is(error)) return [{ message: reasonOf(error) }];
  const { cause, details } = error;
  if (cause instanceof TextError) return [{ message: cause.what, line: cause.line, column: cause.column }];
  const { list, name } = details as { readonly list?: readonly Problem[]; readonly name?: unknown };
  if (error.code === "CONFIG_INVALID" && list !== undefined) {
    return Promise.all(
      list.map(async ({ path, value, allowed }) => ({
        message: `${path} is ${show(value)}, but ${allowed}`,
        path,
        ...(await placeIn(text, path)),
      })),
    );
  }
  const path = error.code.startsWith("OPTION_") && typeof name === "string" ? name : pathOfModule(error.code);
  return [{ message: error.message, ...(path === undefined ? {} : { path, ...(await placeIn(text, path)) }) }];
}

/** What is wrong with a module that was not there before is told where it was named. */
function pathOfModule(code: string): string | undefined {
  return code.startsWith("MODULE_") ? "modules_enabled" : undefined;
}
