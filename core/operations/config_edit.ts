/** Checks and applies an edited configuration. */
import {
  type Config,
  type Problem,
  positionIn,
  show,
  TextError,
  type UnknownName,
  unknownMessage,
} from "../config/index.ts";
import type { ConfigCheck, ConfigFault, ConfigPlan } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { type ApplyDeps, type ApplyOptions, applyConfig, planConfig, previewConfig } from "./apply.ts";
import type { Progress } from "./change.ts";
import { assertEditable, type ConfigEdit, replaceConfigFile, replaceLockFile } from "./config_file.ts";

/** A file of the configuration with another text. */
export type EditedText = Pick<ConfigEdit, "file" | "text">;

/** Reads the configuration as if one of its files had this text. */
export type ReadWith = (edited: EditedText) => Promise<Config>;

export interface EditDeps {
  readonly edit: ConfigEdit;
  readonly read: ReadWith;
  readonly progress: Progress;
  /** Called after the file was written, so that the file watch ignores the write. */
  written(): Promise<void>;
}

/**
 * Reports what a text would change. It changes nothing, and returns problems of the text instead of
 * throwing.
 */
export async function checkConfig(
  parts: ApplyDeps,
  options: ApplyOptions,
  edited: EditedText,
  read: ReadWith,
): Promise<ConfigCheck> {
  // Positions are those in the config file.
  const text = edited.file === "config" ? edited.text : "";
  try {
    const { plan, unknown } = await previewConfig(parts, { ...options, read: () => read(edited) });
    return { faults: [], warnings: await warningsOf(unknown, text), plan };
  } catch (error) {
    const mask = (message: string) => parts.config.mask(message);
    const faults = await faultsOf(error, text);
    return { faults: faults.map((fault) => ({ ...fault, message: mask(fault.message) })), warnings: [] };
  }
}

/**
 * Writes the file and applies it. All checks run before anything is written, and if the
 * configuration cannot be applied, the file gets its previous text back.
 * @throws {ModhostError} CONFIG_NOT_EDITABLE, CONFIG_CHANGED, CONFIG_NOT_WRITTEN, and what
 * `applyConfig` throws
 */
export async function editConfig(
  parts: ApplyDeps,
  options: ApplyOptions,
  { edit, read, progress, written }: EditDeps,
): Promise<ConfigPlan> {
  await assertEditable(parts.config, edit);
  await planConfig(parts, { ...options, read: () => read(edit) });
  // Planning may have taken a while, and another editor may have changed the file.
  const path = await assertEditable(parts.config, edit);
  const isLock = edit.file === "lock";
  const restore = isLock ? await replaceLockFile(path, edit.text) : await replaceConfigFile(path, edit.text);
  await written();
  progress.step(isLock ? "modules.lock written" : "config file written, the previous one saved next to it");
  try {
    return await applyConfig(parts, options, progress);
  } catch (error) {
    await restore()
      .then(written)
      .catch((failure: unknown) => {
        options.log.host.error(
          "Cannot restore the previous text of %s%s: %s",
          path,
          isLock ? "" : ", which is saved next to it",
          reasonOf(failure),
        );
      });
    throw error;
  }
}

/** Returns warnings for unknown names in the text, without those from the environment. */
async function warningsOf(unknown: readonly UnknownName[], text: string): Promise<ConfigFault[]> {
  const withPositions = unknown.map(async (name) => ({
    path: name.path,
    message: unknownMessage(name),
    ...(await positionIn(text, name.path)),
  }));
  return (await Promise.all(withPositions)).filter((warning) => "line" in warning);
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
        ...(await positionIn(text, path)),
      })),
    );
  }
  const path = error.code.startsWith("OPTION_") && typeof name === "string" ? name : pathOfModule(error.code);
  return [{ message: error.message, ...(path === undefined ? {} : { path, ...(await positionIn(text, path)) }) }];
}

/** Reports problems of a newly added module at the option that names it. */
function pathOfModule(code: string): string | undefined {
  return code.startsWith("MODULE_") ? "modules_enabled" : undefined;
}
