/** Operations on the configuration: show, edit, plan and apply. */
import { defineChange, defineOperation } from "./operation.ts";

const text = {
  type: "string",
  required: true,
  describe: "The whole text of the config file",
  maxLength: 1024 * 1024,
} as const;

export const configOperations = [
  defineOperation({
    name: "config",
    method: "GET",
    path: "/config",
    scope: "read",
    help: "Every option with its value in force and where it comes from; secrets are not shown",
    response: { type: "array", items: { $ref: "#/components/schemas/OptionState" } },
    run: ({ server }) => server.config.options(),
  }),
  defineOperation({
    name: "config_file",
    method: "GET",
    path: "/config/file",
    // The text contains secrets, because whoever edits the file must send them back.
    scope: "admin",
    help: "The text of the config file, including secrets, with the etag that config_save needs",
    response: "ConfigFile",
    run: ({ server }) => server.config.file(),
  }),
  defineOperation({
    name: "config_check",
    method: "POST",
    path: "/config/check",
    scope: "admin",
    help: "What would change if the config file had this text, or the errors in it with their positions; nothing is changed",
    input: { text },
    response: "ConfigCheck",
    run: ({ server, input }) => server.config.check(input.text),
  }),
  defineChange({
    name: "config_save",
    path: "/config/file",
    help: "Write the config file and apply it, completely or not at all; refused if somebody else has changed it meanwhile",
    input: {
      text,
      etag: { type: "string", required: true, describe: "The etag of the edited text, from config_file" },
    },
    run: ({ server, by, input }) => server.config.save(input.text, input.etag, { by }),
  }),
  defineOperation({
    name: "plan",
    method: "GET",
    path: "/plan",
    scope: "read",
    help: "How the changed configuration would affect the server: the file is read again, and nothing is changed",
    response: "ConfigPlan",
    run: ({ server }) => server.plan(),
  }),
  defineChange({
    name: "apply",
    path: "/apply",
    help: "Apply a changed configuration, completely or not at all",
    run: ({ server, by }) => server.apply({ by }),
  }),
];
